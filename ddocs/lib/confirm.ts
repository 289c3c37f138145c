/**
 * The shape of a `confirm` document. Checked in `validate_doc_update` and again by the sidecar's handlers, so it
 * imports nothing of either world.
 */
import { credentialFaults } from './credentials.ts'
import type { Doc } from './document.ts'
import { presentOf, secretFaults, textFaults, unchangedFaults, unknownFaults } from './shape.ts'

const CLIENTS = ['device_id', 'device_code', 'confirm_code', 'credentials', 'secret_sha256']
const SIDECARS = ['error', 'docstate', 'inbox']

/** What is wrong with a confirm document, as sentences. None: it is well formed. */
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

/** What a client may not have written in a confirm document. `before` is null for a new one. */
export const confirmChangeFaults = (doc: Doc, before: Doc | null): string[] =>
  unchangedFaults(doc, before, presentOf(doc, SIDECARS), 'what the sidecar wrote')
