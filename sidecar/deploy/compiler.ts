import { join, sep } from 'node:path'
import type { Machines } from '../../ddocs/machine.ts'
import type { Doc } from '../couch/documents.ts'
import type { Target } from './bundle.ts'
import { compileFolder, ddocsFolder } from './compile.ts'
import { refuseBroken } from './deploy-errors.ts'

/** Source of the design documents for a kind of database. */
export interface Template {
  /** Has one subfolder for each design document (see `ddocsFolder`). */
  readonly folder: string
  /** The machines of this kind, for the design document `docstate`. */
  readonly machines?: Machines | undefined
}

/** Compiles all design documents of the templates. Throws `DeployError`, also if two have the same name. */
export type Compiler = (templates: readonly Template[], target: Target) => Promise<readonly Doc[]>

type Compiled = Map<string, Promise<readonly Doc[]>>

/** Cache for this package's folders, which never change at run time: tests start many sidecars in one process. */
const ownCompiled: Compiled = new Map()
const ownFolders = join(ddocsFolder('docstate'), '..', sep)

/** Compiles each template once for many databases, at its first use. */
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

/** Faults of duplicate names: a database holds only one design document of a name. */
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
