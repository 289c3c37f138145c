/**
 * The shape of a `confirm` document. `validate_doc_update` and the sidecar's handlers both check it, so this module
 * imports nothing specific to CouchDB or Node.
 */
import { credentialFaults } from './credentials.ts'
import type { Doc } from './document.ts'
import { presentOf, secretFaults, textFaults, unchangedFaults, unknownFaults } from './shape.ts'

const CLIENTS = ['device_id', 'device_code', 'confirm_code', 'credentials', 'secret_sha256']
const SIDECARS = ['error', 'docstate', 'inbox']

/** Faults of a confirm document, as sentences; empty if the document is valid. */
export function confirmFaults(doc: Doc): string[] {
  return [
    ...textFaults(doc, '_id', 200),
    ...textFaults(doc, 'device_id', 200),
    ...textFaults(doc, 'device_code', 200),
    ...textFaults(doc, 'confirm_code', 200),
    ...credentialFaults(doc.credentials, { mayGenerate: false }),
    ...secretFaults(doc),
    ...unknownFaults(doc, ['type', 'state', ...CLIENTS, ...SIDECARS]),
  ]
}

/** Faults of a client's change to a confirm document. `before` is null if the document is new. */
export const confirmChangeFaults = (doc: Doc, before: Doc | null): string[] =>
  unchangedFaults(doc, before, presentOf(doc, SIDECARS), 'what the sidecar wrote')
