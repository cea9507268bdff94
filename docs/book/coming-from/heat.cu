// Heat in a rod, by hand with MPI and CUDA: one process per GPU. The number of cells is a multiple of the
// number of processes here; a real program also handles the rest.
// nvcc -ccbin mpicxx heat.cu -o heat && mpirun -n 4 ./heat
#include <cstdio>
#include <mpi.h>

constexpr int cells = 1000, steps = 100;

__global__ void fill(float* u, int n, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) u[i + 1] = i + offset == 0 ? 1.0f : 0.0f;
}

__global__ void step(float* v, const float* u, int n, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float here = u[i + 1];
    float left = i + offset == 0 ? here : u[i];
    float right = i + offset == cells - 1 ? here : u[i + 2];
    v[i + 1] = here + 0.25f * (left - 2.0f * here + right);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size, devices;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    cudaGetDeviceCount(&devices);
    cudaSetDevice(rank % devices);
    int n = cells / size, offset = rank * n, blocks = (n + 255) / 256;
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    float *u, *v;
    cudaMalloc(&u, (n + 2) * sizeof(float));
    cudaMalloc(&v, (n + 2) * sizeof(float));
    fill<<<blocks, 256>>>(u, n, offset);
    for (int s = 0; s < steps; ++s) {
        cudaDeviceSynchronize();
        // An MPI that knows CUDA; others need copies through the host.
        MPI_Sendrecv(u + 1, 1, MPI_FLOAT, left, 0, u + n + 1, 1, MPI_FLOAT, right, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(u + n, 1, MPI_FLOAT, right, 1, u, 1, MPI_FLOAT, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        step<<<blocks, 256>>>(v, u, n, offset);
        float* swapped = u;
        u = v, v = swapped;
    }
    float first;
    cudaMemcpy(&first, u + 1, sizeof(float), cudaMemcpyDeviceToHost);
    if (rank == 0) std::printf("%.6f\n", first);
    cudaFree(u), cudaFree(v);
    MPI_Finalize();
}
