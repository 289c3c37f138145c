/** Documents that no honest client writes, each with the reason of CouchDB's refusal. */
import { uniqueName } from '../../support/couchdb.ts'
import { newDevice } from '../registration.ts'

/** A title, the document as JSON or as a value, and the reason of the refusal. */
export type HostileCase = readonly [title: string, doc: unknown, said: RegExp]

const megabyte = 'x'.repeat(1_000_000)
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
const hash = {
  password_scheme: 'pbkdf2',
  pbkdf2_prf: 'sha256',
  salt: '00',
  derived_key: '0'.repeat(64),
  iterations: 600_000,
}

export const newConfirm = (fields: Record<string, unknown> = {}) => {
  const codes = { device_id: 'nobody', device_code: '1234', confirm_code: 'x'.repeat(27) }
  return { _id: uniqueName('confirm'), type: 'confirm', state: 'clicked', ...codes, ...fields }
}

/** JSON with a field that an object literal cannot have. */
const withField = (doc: object, field: string, json: string) =>
  `${JSON.stringify(doc).slice(0, -1)},${JSON.stringify(field)}:${json}}`

const wrong: readonly unknown[] = [null, true, 0, -1, 1e308, [], ['owner@example.com'], {}, { a: 1 }, '', megabyte]
const named = (value: unknown) => (value === megabyte ? 'a megabyte' : JSON.stringify(value))

const types: HostileCase[] = [null, true, 1, [], {}, '', 'Device', 'constructor', '__proto__', 'user', megabyte].map(
  (type) => [`a type ${named(type)}`, newDevice({ type }), /expected a document of type device or confirm, got type /],
)

const fields: HostileCase[] = [
  ...['owner', 'device_code', 'name', 'credentials'].flatMap((field) =>
    wrong.map((value): HostileCase => [
      `a device with ${field} ${named(value)}`,
      newDevice({ [field]: value }),
      new RegExp(`(^|; |: )${field}: expected `),
    ]),
  ),
  ...['device_id', 'device_code', 'confirm_code', 'credentials'].flatMap((field) =>
    wrong.map((value): HostileCase => [
      `a confirmation with ${field} ${named(value)}`,
      newConfirm({ [field]: value }),
      new RegExp(`(^|; |: )${field}: expected `),
    ]),
  ),
  ...[null, 0, [], {}].map((state): HostileCase => [
    `a state ${named(state)}`,
    newDevice({ state }),
    /one of the states/,
  ]),
]

const forgeries: readonly (readonly [field: string, value: unknown])[] = [
  ['docstate', { state: 'new', handled: 'x' }],
  ['docstate', null],
  ['confirmation', { codes: [{ hash: 'x', expires_at: '2099-01-01T00:00:00Z' }] }],
  ['user', 'admin'],
  ['owner_role', '_admin'],
  ['error', { code: 'a', reason: 'b', at: 'c' }],
  ['_attachments', { a: { content_type: 'text/html', data: 'PGI+' } }],
  ['roles', ['_admin']],
  ['constructor', { name: 'x' }],
  ['x'.repeat(1_000_000), 1],
]

const forged: HostileCase[] = [
  ...forgeries.map(([field, value]): HostileCase => [
    `a device with its own ${field.slice(0, 20)} ${JSON.stringify(value).slice(0, 30)}`,
    newDevice({ [field]: value }),
    /leave it out|expected what the sidecar wrote|expected no fields but/,
  ]),
  ['a confirmation with an error', newConfirm({ error: { code: 'a' } }), /error: expected what the sidecar wrote/],
  ['a confirmation with docstate', newConfirm({ docstate: {} }), /docstate is written by the sidecar only/],
]

const credentials: HostileCase[] = [
  ['a password in the clear', { password: 'secret' }],
  ['a hash and a request to generate', { ...hash, generate: true }],
  ['text as the request to generate', { generate: 'yes' }],
  ['another scheme', { ...hash, password_scheme: 'simple' }],
  ['an unknown function', { ...hash, pbkdf2_prf: 'constructor' }],
  ['one iteration', { ...hash, iterations: 1 }],
  ['a billion iterations', { ...hash, iterations: 1e9 }],
  ['half an iteration', { ...hash, iterations: 1000.5 }],
  ['a derived key of the wrong length', { ...hash, derived_key: '00' }],
  ['a derived key in upper case', { ...hash, derived_key: 'A'.repeat(64) }],
  ['roles beside the hash', { ...hash, roles: ['_admin'] }],
  ['a salt of a megabyte', { ...hash, salt: megabyte }],
].map(([title, value]) => [
  `credentials with ${title as string}`,
  newDevice({ credentials: value }),
  /credentials: expected/,
])

const addresses: HostileCase[] = [
  'owner@example.com\r\nBcc: victim@example.com',
  'owner@example.com\nBcc: victim@example.com',
  'owner@example.com\u0000',
  'owner@example.com\u0085Bcc: victim@example.com',
  'owner\u2028@example.com',
  'owner\uFEFF@example.com',
  'owner@example.com, victim@example.com',
  'owner@example.com victim@example.com',
  'owner@example.com;victim@example.com',
  '<owner@example.com>',
  'Owner <owner@example.com>',
  'undisclosed-recipients:;',
  '"quoted part"@example.com',
  'owner(comment)@example.com',
  'owner@[127.0.0.1]',
  'owner@@example.com',
  '@example.com',
  'owner@',
  'owner',
  `${'o'.repeat(65)}@example.com`,
  `o@${'e'.repeat(260)}`,
].map((owner) => [
  `the address ${JSON.stringify(owner).slice(0, 50)}`,
  newDevice({ owner }),
  /owner: expected an email address/,
])

const names: HostileCase[] = [
  'a\r\nBcc: victim@example.com',
  'a\nb',
  'a\u0000',
  'a\u0085b',
  'a\u2028b',
  'x'.repeat(101),
].map((name) => [
  `the name ${JSON.stringify(name).slice(0, 40)}`,
  newDevice({ name }),
  /name: expected 1 to 100 characters/,
])

const codes: HostileCase[] = ['123', '1'.repeat(33), '12 34', '12\r\n34', '１２３４', '12<34', '../..'].map(
  (device_code) => [
    `the device code ${JSON.stringify(device_code).slice(0, 30)}`,
    newDevice({ device_code }),
    /device_code: expected 4 to 32 letters, digits or hyphens/,
  ],
)

const shapes: HostileCase[] = [
  ['an id of 201 characters', newDevice({ _id: 'x'.repeat(201) }), /_id: expected 1 to 200 characters/],
  ['an id with a line break', newDevice({ _id: `${uniqueName('a')}\nb` }), /_id: expected 1 to 200 characters/],
  ['deep nesting', withField(newDevice(), 'deep', nested(500)), /expected no fields but/],
  ['a name nested deeply', withField(newDevice(), 'name', nested(5000)), /name: expected/],
  [
    'credentials with __proto__',
    withField(newDevice(), 'credentials', '{"__proto__":{"generate":true}}'),
    /credentials/,
  ],
  [
    'ten thousand fields',
    newDevice(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`f${i}`, i]))),
    /no fields/,
  ],
  ['a tombstone', newDevice({ _deleted: true }), /may be deleted by an admin only/],
]

export const hostileDocuments: readonly HostileCase[] = [
  ...types,
  ...fields,
  ...forged,
  ...credentials,
  ...addresses,
  ...names,
  ...codes,
  ...shapes,
]
