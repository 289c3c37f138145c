import { bundleModules, type Bundle, type Target } from './bundle.ts'
import { toExpression } from './dialect.ts'
import { DeployError, refuseBroken } from './deploy-errors.ts'
import type { Sandbox } from './sandbox.ts'
import { inWords } from './trial.ts'
import { stop } from 'esbuild'

/** A module's default export: the expression that makes it, and what that gives. */
export interface Evaluated {
  readonly file: string
  readonly expression: string
  readonly value: unknown
}

export const isFunction = ({ value }: Evaluated) => typeof value === 'function'

/** All modules, by their files. Throws `DeployError` with the faults of all of them. */
export async function evaluateModules(
  files: readonly string[],
  target: Target,
  sandbox: Sandbox,
): Promise<ReadonlyMap<string, Evaluated>> {
  const evaluated = new Map<string, Evaluated>()
  const faults: string[] = []
  await withEsbuild(async () => {
    for (const [index, bundle] of (await bundleModules(files, target)).entries()) {
      try {
        evaluated.set(files[index]!, await evaluate(bundle, target, sandbox))
      } catch (thrown) {
        if (!(thrown instanceof DeployError)) throw thrown
        faults.push(...thrown.faults)
      }
    }
  })
  refuseBroken(faults)
  return evaluated
}

async function evaluate(bundle: Bundle, target: Target, sandbox: Sandbox): Promise<Evaluated> {
  const expression = await toExpression(bundle, target)
  try {
    return { file: bundle.file, expression, value: sandbox.evaluate(expression, bundle.file) }
  } catch (cause) {
    throw new DeployError('ddocs_broken', [`${bundle.file}: threw when it was loaded: ${inWords(cause)}`], { cause })
  }
}

let users = 0

/**
 * Runs work that uses esbuild. That keeps a process for the next time, which here may be days away: the last one out
 * ends it. Not for the synchronous functions of esbuild: they keep a thread with a process of its own, which is no
 * longer reaped once it is stopped.
 */
export async function withEsbuild<T>(work: () => Promise<T>): Promise<T> {
  users += 1
  try {
    return await work()
  } finally {
    users -= 1
    if (users === 0) await stop()
  }
}
