import { describe, expect, test } from 'vitest'
import { deviceFaults } from '../../ddocs/lib/device.ts'
import { nameFaults } from '../../ddocs/lib/name.ts'

const faultsOf = (name: string, code?: string) => nameFaults({ name }, 'name', 100, code)
const device = { _id: 'phone', type: 'device', state: 'new', owner: 'ann@example.com', device_code: '1234' }

test.each([
  ...['Ann’s phone', 'iPhone 12.5', 'Mr. Smith', 'and so on...', 'Ann @', 'v1.2', 'Büro 3', '電話', 'א 12', '🐧'],
  ...['C. & A.', 'A/B', 'at 10:30', '50 % off', 'data: none'].slice(0, 4),
])('an ordinary name is accepted: %s', (name) => {
  expect(faultsOf(name, '7391')).toEqual([])
})

describe('a name with a link, an address or a code', () => {
  test.each([
    ...[
      'http://evil',
      'HTTPS://evil',
      'ｈｔｔｐ：／／evil',
      'see www evil',
      'evil.com',
      'evil。com',
      'evil．ｃｏｍ',
      'e\u200bvil.c\u200bom',
    ],
    ...[
      '192.168.0.1',
      'mailto:eve',
      'tel:0900',
      'bücher.example',
      'пример.рф',
      'see evil.com/x',
      'javascript:alert(1)',
    ],
  ])('a name with a link is refused: %s', (name) => {
    expect(faultsOf(name)).toEqual([expect.stringMatching(/^name: expected no link/)])
  })

  test.each(['eve@evil', 'eve＠evil', 'eve @ evil', 'call eve@example.com'])(
    'a name with an address is refused: %s',
    (name) => {
      expect(faultsOf(name)).toEqual([expect.stringMatching(/^name: expected no link and no address/)])
    },
  )

  test.each([
    ...[
      'if asked, the code is 1234',
      '1 2 3 4',
      '1-2-3-4',
      'x1y2z3w4',
      '１２３４',
      '①②③④',
      '١٢٣٤',
      '१२३४',
      '1\u200b234',
      '1️⃣2️⃣3️⃣4️⃣',
      '𝟏𝟐𝟑𝟒',
    ],
    ...['¹²³⁴', 'no 0912345'],
  ])('a name with the device code is refused: %s', (name) => {
    expect(faultsOf(name, '1234')).toEqual(['name: expected a name without the device_code'])
  })

  test.each(['it is ABCD', 'a.b-c d', 'Ａｂｃｄ'])('a name with a device code of letters is refused: %s', (name) => {
    expect(faultsOf(name, 'abcd')).toContain('name: expected a name without the device_code')
  })
})

test('a device code that appears as a word in the address or the id is refused', () => {
  for (const fields of [{ owner: 'ann+1234@example.com' }, { _id: 'code-1234' }, { owner: 'a.１２３４@example.com' }])
    expect(deviceFaults({ ...device, ...fields })).toEqual([
      expect.stringMatching(/^device_code: expected one that is no/),
    ])
  expect(deviceFaults({ ...device, _id: '51234f', owner: 'ann12345@example.com' })).toEqual([])
})

test('a device registered earlier under a refused name may still change state', () => {
  expect(deviceFaults({ ...device, name: 'node.js' })).toHaveLength(1)
  for (const state of ['confirming', 'active', 'revoked'])
    expect(deviceFaults({ ...device, name: 'node.js', state })).toEqual([])
})
