/** Guards a channel: what it is called and whose it is stands in `description`, which its members read. */
import { forbid, isAdmin, type Doc, type UserCtx } from '../../lib/document.ts'

export default function validate(newDoc: Doc, _oldDoc: Doc | null, userCtx: UserCtx): void {
  if (newDoc._id === 'description' && !isAdmin(userCtx))
    forbid('the description of a channel is written by the sidecar')
}
