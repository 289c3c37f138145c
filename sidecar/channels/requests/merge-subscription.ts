import { isObject } from '../../../ddocs/lib/document.ts'
import type { Doc } from '../../couch/documents.ts'
import { mergeFields, type Resolver } from '../../docstate/conflicts/merge.ts'

/** A subscription: exceptions for several devices may have been made by each of them. */
export const mergeSubscription: Resolver = (conflict) => {
  const [ours, theirs, base] = [conflict.ours, conflict.theirs, conflict.base].map(devicesOf)
  const changed = Object.entries(theirs!).filter(([device, state]) => base![device] !== state)
  const gone = Object.keys(base!).filter((device) => !(device in theirs!))
  const devices = Object.fromEntries(
    Object.entries({ ...ours, ...Object.fromEntries(changed) }).filter(([device]) => !gone.includes(device)),
  )
  const { devices: _devices, ...merged } = mergeFields(conflict) as Doc & { devices?: unknown }
  return { ...merged, ...(Object.keys(devices).length > 0 && { devices }) }
}

const devicesOf = (doc: Doc | undefined): Readonly<Record<string, unknown>> =>
  isObject(doc?.devices) ? doc.devices : {}
