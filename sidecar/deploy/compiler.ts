import type { Doc } from '../couch/documents.ts'
import type { Target } from './bundle.ts'
import { compileFolder } from './compile.ts'
import type { Deployment } from './deploy.ts'

/** The design documents of a deployment. Throws `DeployError`. */
export type Compiler = (deployment: Omit<Deployment, 'database'>, target: Target) => Promise<readonly Doc[]>

/** Compiles what many databases get once, as it is when the first of them asks. */
export function createCompiler(): Compiler {
  const compiled = new Map<string, Promise<readonly Doc[]>>()
  return ({ folder, machines }, target) => {
    const key = JSON.stringify([folder, machines, target])
    const known = compiled.get(key)
    if (known) return known
    const compiling = compileFolder({ folder, machines, target })
    compiled.set(key, compiling)
    compiling.catch(() => compiled.delete(key))
    return compiling
  }
}
