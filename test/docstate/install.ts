import type { Machines } from '../../ddocs/machine.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { finishDdoc } from '../../sidecar/deploy/keep-machines.ts'
import { createCompiler } from '../../sidecar/deploy/compiler.ts'

/** Installs the real design document, unless the database has one. */
export async function installDocstate(database: Database, machines: Machines): Promise<void> {
  if (await database.find('_design/docstate')) return
  for (const compiled of await createCompiler()([{ folder: ddocsFolder('docstate'), machines }], 'es2017')) {
    await database.put(finishDdoc(compiled, undefined).ddoc)
  }
}
