/** Times as documents carry them. */
export const A_TIME = 'a time such as 2026-11-26T12:00:00Z'

/** ISO 8601 with its zone: without one it would be another time for each who reads it. */
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/

export const isTime = (field: unknown): field is string =>
  typeof field === 'string' && ISO.test(field) && !isNaN(Date.parse(field))
