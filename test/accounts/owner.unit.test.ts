import { expect, test } from 'vitest'
import { normaliseAddress, ownerHashOf, ownerRoleOf } from '../../sidecar/accounts/owner.ts'
import { userNameOf } from '../../sidecar/devices/device-names.ts'

test.each([
  ['Owner@Example.COM', 'owner@example.com'],
  ['  owner@example.com\n', 'owner@example.com'],
  ['cafe\u0301@example.com', 'caf\u00E9@example.com'],
  ['OWNER@EX\u00C4MPLE.com', 'owner@ex\u00E4mple.com'],
  ['ann@xn--mnchen-3ya.de', 'ann@m\u00FCnchen.de'],
  ['Ann@XN--MNCHEN-3YA.de', 'ann@m\u00FCnchen.de'],
  ['ann@mu\u0308nchen.de', 'ann@m\u00FCnchen.de'],
  ['ann@mail.xn--zzzz.de', 'ann@mail.xn--zzzz.de'],
  ['ann@fa\u00DF.de', 'ann@fa\u00DF.de'],
  ['ann@1.2.3', 'ann@1.2.3'],
  ['ann@%65xample.com', 'ann@%65xample.com'],
  ['ann@m\u00FCnchen.de/x', 'ann@m\u00FCnchen.de/x'],
  ['J\u030Cohn@example.com', '\u01F0ohn@example.com'],
  ['first.last+tag@example.com', 'first.last+tag@example.com'],
])('the address %j is normalised to %j', (written, normal) => {
  expect(normaliseAddress(written)).toBe(normal)
  expect(normaliseAddress(normal)).toBe(normal)
  expect(ownerRoleOf(normaliseAddress(written))).toBe(ownerRoleOf(normaliseAddress(normal)))
})

test.each([
  ['\u043Ewner@example.com', 'owner@example.com'],
  ['ｏwner@example.com', 'owner@example.com'],
  ['own.er@example.com', 'owner@example.com'],
  ['ann@fa\u00DF.de', 'ann@fass.de'],
  ['ann@munchen.de', 'ann@m\u00FCnchen.de'],
])('%j and %j are different owners', (one, other) => {
  expect(ownerRoleOf(normaliseAddress(one))).not.toBe(ownerRoleOf(normaliseAddress(other)))
  expect(ownerHashOf(normaliseAddress(one))).not.toBe(ownerHashOf(normaliseAddress(other)))
})

test('names of users and roles show neither the address nor the device id', () => {
  expect(userNameOf('_admin')).toMatch(/^device-[0-9a-f]{32}$/)
  expect(ownerRoleOf(normaliseAddress('_admin@example.com'))).toMatch(/^owner-[0-9a-f]{32}$/)
  expect(userNameOf('a')).toBe(userNameOf('a'))
  expect(userNameOf('a')).not.toBe(userNameOf('A'))
})
