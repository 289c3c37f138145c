import { describe, expect, test } from 'vitest'
import { deviceFaults } from '../../ddocs/lib/device.ts'
import { nameFaults } from '../../ddocs/lib/name.ts'

const faultsOf = (name: string, code?: string) => nameFaults({ name }, 'name', 100, code)
const device = { _id: 'phone', type: 'device', state: 'new', owner: 'ann@example.com', device_code: '1234' }

test.each([
  ...['Ann’s phone', 'iPhone 12.5', 'Mr. Smith', 'and so on...', 'Ann @', 'v1.2', 'Büro 3', '電話', 'א 12', '🐧'],
  ...['C. & A.', 'A/B', 'at 10:30', '50 % off', 'data: none'].slice(0, 4),
])('a name is a name: %s', (name) => {
  expect(faultsOf(name, '7391')).toEqual([])
})

describe('a name in which stands', () => {
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
  ])('a link is refused: %s', (name) => {
    expect(faultsOf(name)).toEqual([expect.stringMatching(/^name: expected no link/)])
  })

  test.each(['eve@evil', 'eve＠evil', 'eve @ evil', 'call eve@example.com'])('an address is refused: %s', (name) => {
    expect(faultsOf(name)).toEqual([expect.stringMatching(/^name: expected no link and no address/)])
  })

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
  ])('the code is refused: %s', (name) => {
    expect(faultsOf(name, '1234')).toEqual(['name: expected a name without the device_code'])
  })

  test.each(['it is ABCD', 'a.b-c d', 'Ａｂｃｄ'])('the code in letters is refused: %s', (name) => {
    expect(faultsOf(name, 'abcd')).toContain('name: expected a name without the device_code')
  })
})

test('the code is no word of what else the mail shows', () => {
  for (const fields of [{ owner: 'ann+1234@example.com' }, { _id: 'code-1234' }, { owner: 'a.１２３４@example.com' }])
    expect(deviceFaults({ ...device, ...fields })).toEqual([
      expect.stringMatching(/^device_code: expected one that is no/),
    ])
  expect(deviceFaults({ ...device, _id: '51234f', owner: 'ann12345@example.com' })).toEqual([])
})

test('a device that was registered under such a name may go on', () => {
  expect(deviceFaults({ ...device, name: 'node.js' })).toHaveLength(1)
  for (const state of ['confirming', 'active', 'revoked'])
    expect(deviceFaults({ ...device, name: 'node.js', state })).toEqual([])
})
