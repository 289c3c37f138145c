import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { Reject, SidecarError } from '../../sidecar/core/errors.ts'
import { cut, failureOf, stackOf } from '../../sidecar/core/failure.ts'

test.each(['127.0.0.1', 'localhost'])('a failed fetch from %s names the address that refused it', async (host) => {
  const server = createServer().listen(0)
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve)) // the port is closed now
  const thrown: unknown = await fetch(`http://${host}:${port}`).catch((reason: unknown) => reason)
  expect(failureOf(thrown)).toEqual({
    code: 'ECONNREFUSED',
    reason: expect.stringMatching(/^fetch failed: connect ECONNREFUSED [^ ]+:\d+$/) as string,
  })
})

const cyclic = new Error('outer')
cyclic.cause = new Error('inner', { cause: cyclic })

test.each<[string, unknown, string, string]>([
  [
    'that has a code',
    Object.assign(new Error('a', { cause: { code: 'B', message: 'b' } }), { code: 'A' }),
    'A',
    'a: b',
  ],
  ['whose cause has a code', new TypeError('a', { cause: Object.assign(new Error('b'), { code: 'B' }) }), 'B', 'a: b'],
  ['whose causes are a cycle', cyclic, 'Error', 'outer: inner'],
  ['whose message contains its cause', new Error('no: b', { cause: new Error('b') }), 'Error', 'no: b'],
  [
    'that contains several errors',
    new AggregateError([new RangeError('one'), new Error('two')], 'all'),
    'AggregateError',
    'all: one',
  ],
  [
    'of a class of the sidecar',
    new SidecarError('ours', 'all of it', { cause: new Error('secret') }),
    'ours',
    'all of it',
  ],
  ['that a handler rejects with', new Reject('no', 'never', { cause: new Error('secret') }), 'no', 'never'],
  [
    'whose cause is of a class of the sidecar',
    new Error('x', { cause: new SidecarError('ours', 'y') }),
    'ours',
    'x: y',
  ],
  ['with a code that is a number', Object.assign(new Error('x'), { code: 5 }), 'Error', 'x'],
])('an error %s becomes a failure with code and reason', (_, thrown, code, reason) => {
  expect(failureOf(thrown)).toEqual({ code, reason })
})

test.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  ['a😀b', 3, 'a😀b'],
  ['a😀bc', 3, 'a😀…'],
  ['😀'.repeat(9), 3, '😀😀…'],
  ['\ud83d', 3, '\ufffd'],
])('%j cut to %i characters is %j', (text, most, short) => {
  expect(cut(text, most)).toBe(short)
})

test('a stack has its frames, however long the message is', () => {
  const stack = stackOf(new Error('x'.repeat(1_000_000)))!
  expect(stack.length).toBeLessThan(5000)
  expect(stack).toMatch(/^Error: x+…\n\s+at .*failure\.unit\.test/)
  expect(stackOf(new SidecarError('ours', 'what is wrong'))).toBeUndefined()
})
