import { expect, test } from 'vitest'
import { writtenFrom } from '../../sidecar/couch/written.ts'

test.each([
  ['forbidden', 'forbidden'],
  ['unauthorized', 'unauthorized'],
  ['doc_validation', 'bad_request'],
  ['illegal_docid', 'bad_request'],
  ['attachment_too_large', 'too_large'],
  ['document_too_large', 'too_large'],
])('a row with the error %s is a definite answer about its document', (error, code) => {
  expect(writtenFrom({ id: 'o', error, reason: 'why' })).toEqual({ kind: 'refused', code, reason: 'why' })
})

test('a guard that throws on a document is a lasting refusal', () => {
  const reason = 'a validate_doc_update function fails on it: it throws TypeError'
  const row = { id: 'o', error: 'TypeError', reason: '{[]}' } // as CouchDB reports it
  expect(writtenFrom(row)).toEqual({ kind: 'refused', code: 'bad_request', reason })
})

test.each([
  ['os_process_error', 'server'],
  ['timeout', 'timeout'],
  ['internal_server_error', 'server'],
  ['all_dbs_active', 'overloaded'],
  ['write_quorum_not_met', 'server'],
  ['nodedown', 'server'],
  ['unknown_error', 'server'],
  ['a word of a later CouchDB', 'server'],
  ['constructor', 'server'],
])('a row with the error %s is temporary, and the outcome of its document is unknown', (error, code) => {
  const refused = { code, error, retry: 'soon', rowOf: 'o' }
  expect(() => writtenFrom({ id: 'o', error, reason: 'why' })).toThrow(expect.objectContaining(refused))
})

test('a row without error and without revision leaves the outcome unknown', () => {
  expect(() => writtenFrom({ id: 'o' })).toThrow(expect.objectContaining({ code: 'garbled' }))
})
