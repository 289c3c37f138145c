/**
 * The shape of a `device` document. Checked in `validate_doc_update` and again by the sidecar's handlers, so it
 * imports nothing of either world.
 */
import { credentialFaults } from './credentials.ts'
import type { Doc } from './document.ts'
import { codeFaults, nameFaults } from './name.ts'
import { patternFaults, presentOf, secretFaults, textFaults, unchangedFaults, unknownFaults } from './shape.ts'

const CLIENTS = ['owner', 'device_code', 'name', 'credentials', 'secret_sha256']
const SIDECARS = ['confirmation', 'user', 'owner_role', 'error', 'docstate', 'inbox']

/** One mailbox, without quotes, comments, lists or groups. Whether it exists is found out by writing to it. */
export const ADDRESS =
  /^(?=.{3,254}$)[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]{1,64}@[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]+$/

/** What is wrong with a device document, as sentences. None: it is well formed. */
export function deviceFaults(doc: Doc): string[] {
  return [
    ...textFaults(doc, '_id', 200),
    ...patternFaults(doc, 'owner', ADDRESS, 'an email address'),
    ...patternFaults(doc, 'device_code', /^[A-Za-z0-9-]{4,32}$/, '4 to 32 letters, digits or hyphens'),
    ...(doc.name === undefined ? [] : shownNameFaults(doc)),
    ...(doc.state === 'new' ? codeFaults(doc) : []),
    ...credentialFaults(doc.credentials, { mayGenerate: true }),
    ...secretFaults(doc),
    ...unknownFaults(doc, ['type', 'state', ...CLIENTS, ...SIDECARS]),
  ]
}

/** What the mail shows, before it is sent: a device that was registered with another name may go on, and be revoked. */
const shownNameFaults = (doc: Doc): string[] =>
  doc.state === 'new' ? nameFaults(doc, 'name', 100, doc.device_code) : textFaults(doc, 'name', 100)

/**
 * What a client may not have changed, or written, in a device document. `before` is null for a new one. Asking twice
 * takes an answer of the sidecar between: else a client could by itself make a branch as long as it likes beside a
 * device's history, and CouchDB would show the longest.
 */
export function deviceChangeFaults(doc: Doc, before: Doc | null): string[] {
  const fixed = before ? ['owner', 'device_code', 'credentials', 'secret_sha256'] : []
  const unseen = before?.state === 'new' && !before.docstate
  const given = presentOf(doc, ['confirmation', 'error', 'docstate', 'inbox'])
  return [
    ...(unseen ? ['the sidecar has not seen this device yet; wait for its answer before asking again'] : []),
    ...unchangedFaults(doc, before, fixed, 'it unchanged'),
    ...unchangedFaults(doc, before, ['user', 'owner_role', ...given], 'what the sidecar wrote'),
  ]
}
