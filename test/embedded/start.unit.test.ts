import { expect, test } from 'vitest'
import { startCouch, startMailCatcher } from '../../embedded/src/index.ts'
import { ConfigError, SidecarError } from '../../sidecar/core/errors.ts'
import { standIn, type Embedded } from '../../sidecar/embedded/start.ts'

const embedded: Embedded = { startCouch, startMailCatcher } // checks that its types match the sidecar's
const signal = new AbortController().signal

test('a missing package is a settings fault whose text names both solutions', async () => {
  const name: string = 'not-installed'
  const starting = standIn(
    'COUCHDB_URL',
    () => Promise.resolve(),
    signal,
    () => import(name) as Promise<Embedded>,
  )
  await expect(starting).rejects.toThrow(ConfigError)
  await expect(starting).rejects.toThrow('set COUCHDB_URL, or npm install couchdb-sidecar-embedded')
})

test('a broken package fails with its own reason', async () => {
  const broken = new Error('broken')
  const starting = standIn(
    'SMTP_URL',
    () => Promise.resolve(),
    signal,
    () => Promise.reject(broken),
  )
  await expect(starting).rejects.toBe(broken)
})

test('a failed start is a SidecarError, unless the start was aborted', async () => {
  const taken = new Error('no free port')
  const starting = (signal: AbortSignal) =>
    standIn(
      'SMTP_URL',
      () => Promise.reject(taken),
      signal,
      () => Promise.resolve(embedded),
    )
  await expect(starting(signal)).rejects.toMatchObject({ code: 'embedded', message: 'no free port', cause: taken })
  await expect(starting(signal)).rejects.toThrow(SidecarError)
  const reason = new Error('no longer wanted')
  await expect(starting(AbortSignal.abort(reason))).rejects.toBe(reason)
})
