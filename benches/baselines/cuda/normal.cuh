// Root, inverse and quotient as CUDA has them, rounded to nearest, but without the question whether a number is so
// small or large that it needs another way. Knows nothing of what is computed.
#pragma once

#include "common.cuh"

BOTH float root(float x)
{
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    const float near = __fmul_rn(x, inverse);
    return __fmaf_rn(__fmaf_rn(-near, near, x), __fmul_rn(inverse, 0.5f), near);
#else
    return std::sqrt(x);
#endif
}

#ifdef __CUDA_ARCH__
__device__ inline float about_inverse(float x)
{
    float near;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));
    return near;
}
#endif

BOTH float inverse(float x)
{
#ifdef __CUDA_ARCH__
    const float near = about_inverse(x);
    return __fmaf_rn(near, -__fmaf_rn(x, near, -1.0f), near);
#else
    return 1.0f / x;
#endif
}

BOTH float quotient(float x, float y)
{
#ifdef __CUDA_ARCH__
    const float first = about_inverse(y);
    const float inverse = __fmaf_rn(first, __fmaf_rn(-y, first, 1.0f), first);
    const float near = __fmul_rn(x, inverse);
    return __fmaf_rn(inverse, __fmaf_rn(-y, near, x), near);
#else
    return x / y;
#endif
}
