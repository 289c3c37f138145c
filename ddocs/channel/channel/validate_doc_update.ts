/** Guards a channel: only the sidecar writes the document `description`, which shows members its name and owner. */
import { forbid, isAdmin, type Doc, type UserCtx } from '../../lib/document.ts'

export default function validate(newDoc: Doc, _oldDoc: Doc | null, userCtx: UserCtx): void {
  if (newDoc._id === 'description' && !isAdmin(userCtx))
    forbid('the description of a channel is written by the sidecar')
}
