/**
 * The shape of a `device` document. `validate_doc_update` and the sidecar's handlers both check it, so this module
 * imports nothing specific to CouchDB or Node.
 */
import { credentialFaults } from './credentials.ts'
import type { Doc } from './document.ts'
import { codeFaults, nameFaults } from './name.ts'
import { patternFaults, presentOf, secretFaults, textFaults, unchangedFaults, unknownFaults } from './shape.ts'

const CLIENTS = ['owner', 'device_code', 'name', 'credentials', 'secret_sha256']
const SIDECARS = ['confirmation', 'user', 'owner_role', 'error', 'docstate', 'inbox']

/** One mailbox, without quotes, comments, lists or groups. Only a mail to the address shows whether it exists. */
export const ADDRESS =
  /^(?=.{3,254}$)[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]{1,64}@[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]+$/

/** Faults of a device document, as sentences; empty if the document is valid. */
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

/** Strict only before the mail shows the name: a device registered with another name may continue, and be revoked. */
const shownNameFaults = (doc: Doc): string[] =>
  doc.state === 'new' ? nameFaults(doc, 'name', 100, doc.device_code) : textFaults(doc, 'name', 100)

/**
 * Faults of a client's change to a device document. `before` is null if the document is new. A client must wait for the
 * sidecar's answer before it requests again. Otherwise a client alone could grow a branch beside a device's history,
 * and CouchDB shows the longest branch.
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
