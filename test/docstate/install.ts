import type { Machines } from '../../ddocs/machine.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { compileDdocs, ddocsFolder } from '../../sidecar/deploy/compile.ts'

/** The real design document, unless the database has one. */
export async function installDocstate(database: Database, machines: Machines): Promise<void> {
  if (await database.find('_design/docstate')) return
  for (const ddoc of await compileDdocs({ folder: ddocsFolder('docstate'), machines })) await database.put(ddoc)
}
