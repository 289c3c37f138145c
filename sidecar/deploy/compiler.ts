import { join, sep } from 'node:path'
import type { Machines } from '../../ddocs/machine.ts'
import type { Doc } from '../couch/documents.ts'
import type { Target } from './bundle.ts'
import { compileFolder, ddocsFolder } from './compile.ts'
import { refuseBroken } from './deploy-errors.ts'

/** Design documents for a kind of database. */
export interface Template {
  /** One folder in it for each design document (see `ddocsFolder`). */
  readonly folder: string
  /** The machines of this kind, for the design document `docstate`. */
  readonly machines?: Machines | undefined
}

/** All design documents of these. Throws `DeployError`, also where two of them have one of the same name. */
export type Compiler = (templates: readonly Template[], target: Target) => Promise<readonly Doc[]>

type Compiled = Map<string, Promise<readonly Doc[]>>

/** Of this package's folders, which stay as they are while the process lives: tests start many sidecars in one process. */
const ownCompiled: Compiled = new Map()
const ownFolders = join(ddocsFolder('docstate'), '..', sep)

/** Compiles what many databases get once, as it is when the first of them asks. */
export function createCompiler(): Compiler {
  const othersCompiled: Compiled = new Map()

  function compile({ folder, machines }: Template, target: Target): Promise<readonly Doc[]> {
    const compiled = folder.startsWith(ownFolders) ? ownCompiled : othersCompiled
    const key = JSON.stringify([folder, machines, target])
    const known = compiled.get(key)
    if (known) return known
    const compiling = compileFolder({ folder, machines, target })
    compiled.set(key, compiling)
    compiling.catch(() => compiled.delete(key))
    return compiling
  }

  return async (templates, target) => {
    const folders: CompiledFolder[] = []
    for (const template of templates) folders.push({ ...template, ddocs: await compile(template, target) })
    refuseBroken(nameFaults(folders))
    return folders.flatMap(({ ddocs }) => ddocs)
  }
}

interface CompiledFolder {
  readonly folder: string
  readonly ddocs: readonly Doc[]
}

/** A database has room for one design document of a name. */
export function nameFaults(compiled: readonly CompiledFolder[]): string[] {
  const folders = new Map<string, string>()
  const faults: string[] = []
  for (const { folder, ddocs } of compiled) {
    for (const { _id } of ddocs) {
      const other = folders.get(_id)
      if (other === undefined) folders.set(_id, folder)
      else
        faults.push(`${folder}: ${_id} is in ${other} already, and both are for the same database; rename one of them`)
    }
  }
  return faults
}
