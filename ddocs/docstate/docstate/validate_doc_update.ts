/**
 * Guards a database by the machines in its own design document: the deploy writes them to its field `machines`. In
 * documents of other types, only the field `docstate` is checked.
 */
import { forbid, isAdmin, type Doc, type UserCtx } from '../../lib/document.ts'
import { refusalOf } from '../../lib/guard.ts'
import type { Machines } from '../../machine.ts'

export default function validate(
  this: { readonly machines?: Machines },
  newDoc: Doc,
  oldDoc: Doc | null,
  userCtx: UserCtx,
): void {
  if (isAdmin(userCtx)) return
  const refusal = refusalOf({ newDoc, oldDoc, userCtx, machines: this.machines ?? {} })
  if (refusal !== undefined) forbid(refusal)
}
