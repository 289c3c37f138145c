import { bundleModules, type Bundle, type Target } from './bundle.ts'
import { toExpression } from './dialect.ts'
import { DeployError, refuseBroken } from './deploy-errors.ts'
import type { Sandbox } from './sandbox.ts'
import { inWords } from './trial.ts'
import { stop } from 'esbuild'

/** A module's default export: its expression, and the value of that expression. */
export interface Evaluated {
  readonly file: string
  readonly expression: string
  readonly value: unknown
}

export const isFunction = ({ value }: Evaluated) => typeof value === 'function'

/** Evaluates modules; the keys of the map are their files. Throws `DeployError` with the faults of all modules. */
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
 * Runs work that uses esbuild. esbuild keeps a process for its next use, possibly days later, so the last user stops
 * it. Do not use the synchronous functions of esbuild: they keep a thread with a process of its own, which is not
 * reaped after the stop.
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
