import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { openWorkerConnection } from '../../sidecar/testing/worker-connection.ts'
import { couchUrl } from '../support/couchdb.ts'

test('a worker whose process was blocked is not idle before its next request has ended', async () => {
  const connection = await openWorkerConnection(couchUrl(), () => 0)
  onTestFinished(() => connection.cut())
  const order: string[] = []
  const idle = connection.whenIdle().then(() => order.push('idle'))
  const asked = sleep(20)
    .then(() => fetch(`${new URL(connection.url).origin}/_up`))
    .then(() => order.push('answered'))
  for (const began = performance.now(); performance.now() - began < 300;);
  await Promise.all([idle, asked])
  expect(order).toEqual(['answered', 'idle'])
})
