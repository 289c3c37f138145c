import { expect, test } from 'vitest'
import { queryViewIndex } from '../../sidecar/indexes/view-index.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { answerWith, refuse, startFaultyProxy } from '../support/faulty-proxy.ts'

const say = (answer: unknown) => answerWith(200, JSON.stringify(answer))

test.each(['ffffffff-00000000', '00000001-00000001', '100000000-200000000', 'nothing', '-'])(
  'a shard with the range %s holds no partition and gives an error, not an endless search',
  async (range) => {
    const proxy = await startFaultyProxy()
    proxy.plan(({ path }) => {
      if (path === '/db') return say({ props: { partitioned: true } })
      return path === '/db/_shards' ? say({ shards: { [range]: [] } }) : refuse(400)
    })
    const requested = queryViewIndex(createTestCouch({ url: proxy.url }), 'db', '_design/x', 'v')
    await expect(requested).rejects.toMatchObject({ code: 'garbled' })
  },
)
