"""Heat in a rod with JAX: the devices of one process, or of several with jax.distributed."""
import jax
import jax.numpy as jnp

CELLS, STEPS = 1000, 100


def step(_, u):
    left = jnp.concatenate([u[:1], u[:-1]])
    right = jnp.concatenate([u[1:], u[-1:]])
    return u + 0.25 * (left - 2.0 * u + right)


@jax.jit
def heat(u):
    return jax.lax.fori_loop(0, STEPS, step, u)


u = jnp.zeros(CELLS, jnp.float32).at[0].set(1.0)
print(f"{float(heat(u)[0]):.6f}")
