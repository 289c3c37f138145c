import { ofDatabases } from './groups/databases.ts'
import { ofDbUpdates } from './groups/db-updates.ts'
import { ofVisitedDatabases } from './groups/visited-databases.ts'
import { ofGlobalChanges } from './groups/global-changes.ts'
import { ofHandlers } from './groups/handlers.ts'
import { ofInbox } from './groups/inbox.ts'
import { ofIndexes } from './groups/indexes.ts'
import { ofProcess } from './groups/process.ts'
import { ofSidecar } from './groups/sidecar.ts'

/** Every metric there is. docs/metrics.md is made of it. */
export const GROUPS = [
  ...[ofDatabases, ofVisitedDatabases, ofHandlers, ofInbox],
  ...[ofGlobalChanges, ofDbUpdates, ofIndexes, ofSidecar, ofProcess],
]
