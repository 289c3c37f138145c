/** Form of a time in a document, for messages. */
export const A_TIME = 'a time such as 2026-11-26T12:00:00Z'

/** ISO 8601 with a zone: without it, the time would differ for each reader. */
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/

export const isTime = (field: unknown): field is string =>
  typeof field === 'string' && ISO.test(field) && !isNaN(Date.parse(field))
