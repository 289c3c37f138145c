import { describe, expect, test } from 'vitest'
import { sameText } from '../../sidecar/core/same-text.ts'
import { hashCode, newCode } from '../../sidecar/devices/codes.ts'
import { judge } from '../../sidecar/devices/check-codes.ts'
import type { Device } from '../../sidecar/devices/device-documents.ts'

const NOW = Date.UTC(2030, 0, 1)
const code = newCode()
const sent = (ms: number, of = code) => ({ hash: hashCode(of), expires_at: new Date(NOW + ms).toISOString() })

const device = (state: string, fields: Partial<Device> = {}): Device => ({
  _id: 'd',
  type: 'device',
  state,
  owner: 'owner@example.com',
  device_code: '1234',
  confirmation: { codes: [sent(1000)] },
  ...fields,
})

const clicks = {
  'the right codes': ['1234', code],
  'a wrong device code': ['1235', code],
  'a wrong link': ['1234', newCode()],
} as const

describe.each<[state: string, ...verdicts: string[]]>([
  ['new', 'right', 'wrong', 'refused'],
  ['confirming', 'right', 'wrong', 'refused'],
  ['confirmed', 'again', 'wrong', 'refused'],
  ['active', 'again', 'wrong', 'refused'],
  ['revoked', 'refused', 'refused', 'refused'],
  ['expired', 'expired', 'expired', 'refused'],
  ['error', 'right', 'wrong', 'refused'],
])('codes of a device in state %s', (state, ...verdicts) => {
  test.each(Object.entries(clicks).map(([what, given], i) => [what, verdicts[i]!, given] as const))(
    'the verdict on %s is %s',
    (_, verdict, [deviceCode, confirmCode]) => {
      expect(judge(device(state), deviceCode, confirmCode, NOW)).toBe(verdict)
    },
  )
})

test('a link that confirmed a device stays used after a failure, also after another request', () => {
  for (const state of ['error', 'new']) {
    const failed = device(state, { confirmation: { codes: [sent(1000)], confirmed_by: 'c' } })
    expect(judge(failed, '1234', code, NOW)).toBe('refused')
  }
})

test('a code is valid until its expiry, to the millisecond', () => {
  expect(judge(device('confirming'), '1234', code, NOW + 999)).toBe('right')
  expect(judge(device('confirming'), '1234', code, NOW + 1000)).toBe('expired')
})

test('a code past its expiry is expired in every device state, with any device code', () => {
  for (const state of ['new', 'confirming', 'active', 'revoked']) {
    expect(judge(device(state), '0000', code, NOW + 1000)).toBe('expired')
  }
})

test('every sent code is valid, each with its own expiry', () => {
  const other = newCode()
  const two = device('confirming', { confirmation: { codes: [sent(-1, other), sent(1)] } })
  expect(judge(two, '1234', code, NOW)).toBe('right')
  expect(judge(two, '1234', other, NOW)).toBe('expired')
})

test('a missing device gives the same result as a wrong code', () => {
  expect(judge(undefined, '1234', code, NOW)).toBe('refused')
  expect(judge({ ...device('confirming'), confirmation: undefined as never }, '1234', code, NOW)).toBe('refused')
})

test('neither the hash nor an empty text is a valid code', () => {
  expect(judge(device('confirming'), '1234', hashCode(code), NOW)).toBe('refused')
  expect(judge(device('confirming'), '1234', '', NOW)).toBe('refused')
})

test('codes have 160 bits, are unique, and need no escaping in a link', () => {
  const codes = Array.from({ length: 1000 }, newCode)
  expect(new Set(codes).size).toBe(1000)
  for (const one of codes) expect(encodeURIComponent(one)).toBe(one)
  expect(Buffer.from(codes[0]!, 'base64url')).toHaveLength(20)
})

test('texts of different lengths can be compared', () => {
  expect(sameText('', '')).toBe(true)
  expect(sameText('a', 'aa')).toBe(false)
  expect(sameText('é', 'e\u0301')).toBe(false)
})
