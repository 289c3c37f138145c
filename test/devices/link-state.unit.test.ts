/** The state of a link, from the state of its device. */
import { expect, test } from 'vitest'
import { hashCode } from '../../sidecar/devices/codes.ts'
import { stateOfLink } from '../../sidecar/devices/check-codes.ts'
import type { Device } from '../../sidecar/devices/device-documents.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const device = (state: string, more: object = {}, expires_at = '2026-01-01T13:00:00Z') =>
  ({
    ...{ _id: 'd1', type: 'device', state, owner: 'ann@example.com', device_code: '1234' },
    confirmation: { codes: [{ hash: hashCode('right'), expires_at }], ...more },
  }) as Device

test.each<[string, Device | undefined, string]>([
  ['open', device('confirming'), 'right'],
  ['open', device('new'), 'right'],
  ['open', device('error'), 'right'],
  ['used', device('confirmed'), 'right'],
  ['used', device('active', {}, '2026-01-01T11:00:00Z'), 'right'],
  ['used', device('error', { confirmed_by: 'confirm:1' }), 'right'],
  ['used', device('revoked'), 'right'],
  ['expired', device('confirming', {}, '2026-01-01T11:00:00Z'), 'right'],
  ['expired', device('expired'), 'right'],
  ['unknown', device('confirming'), 'wrong'],
  ['unknown', device('active'), 'wrong'],
  ['unknown', undefined, 'right'],
])('the link’s state is %s', (kind, found, code) => expect(stateOfLink(found, code, now).kind).toBe(kind))
