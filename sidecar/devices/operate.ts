/** Operator actions on one device: writes of its document that record the operator. */
import { isoTime } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { withDocstate } from '../docstate/outcome-documents.ts'
import type { Action } from '../docstate/operator/actions.ts'

/**
 * Ends a device's access and deletes its user. Irreversible: the device must register anew.
 *
 * @param now milliseconds since the epoch
 */
export const revokeBy = (by: string, now: number): Action => moveTo('revoked', mayRevoke, by, now)

/** Sends the owner another mail, with another link. @param now milliseconds since the epoch */
export const mailAgainBy = (by: string, now: number): Action => moveTo('new', mayMailAgain, by, now)

export const mayRevoke = ({ type, state }: StoredDoc): boolean =>
  type === 'device' && !['revoked', 'forgotten'].includes(String(state))

/** A confirmed device needs no mail. */
export const mayMailAgain = ({ type, state, user }: StoredDoc): boolean =>
  type === 'device' && user === undefined && ['confirming', 'expired', 'error'].includes(String(state))

const moveTo =
  (state: string, may: (doc: StoredDoc) => boolean, by: string, now: number): Action =>
  (doc) => {
    if (!may(doc)) return undefined
    const { error: _error, ...rest } = doc
    return withDocstate({ ...rest, _id: doc._id, state }, { state, asked: { at: isoTime(now), by } })
  }
