import type { Machines } from '../../ddocs/machine.ts'
import type { Database } from '../../sidecar/couch/database.ts'

export async function installDocstate(database: Database, _machines: Machines): Promise<void> {
  if (await database.find('_design/docstate')) return
  await database.put({
    _id: '_design/docstate',
    views: {
      by_state: {
        map: `function (doc) {
          if (typeof doc.type !== 'string' || typeof doc.state !== 'string') return
          var d = doc.docstate && doc.docstate.state === doc.state ? doc.docstate : {}
          var s = d.handled ? ['handled', null] : d.parked ? ['parked', d.parked.at] : d.claim ? ['claimed', d.claim.at] : d.retry_at ? ['retry', d.retry_at] : d.timeout_at ? ['timeout', d.timeout_at] : ['ready', null]
          emit([doc.type, doc.state].concat(s), null)
        }`,
        reduce: '_count',
      },
    },
  })
}
