import { expect, test } from 'vitest'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { mergeDevice } from '../../sidecar/devices/register.ts'

const ours = { _id: 'phone', _rev: '3-a', type: 'device', state: 'confirming', owner: 'ann@example.com' } as StoredDoc
const theirs = {
  ...ours,
  _rev: '1-b',
  state: 'new',
  owner: 'eve@example.com',
  credentials: { salt: 'eve' },
} as StoredDoc

test('a merge ignores another owner’s device under the same id', () => {
  expect(mergeDevice({ ours, theirs, base: undefined })).toEqual(ours)
})

test('a merge keeps the fields that a device has added, also after a compaction removed the base', () => {
  const later = { ...ours, name: 'phone' } as StoredDoc
  expect(mergeDevice({ ours, theirs: later, base: undefined, baseRev: '1-a' })).toMatchObject({ name: 'phone' })
})
