export { startCouch, type EmbeddedCouch, type EmbeddedCouchOptions } from './couch.ts'
export { startMailCatcher, type CaughtMail, type MailCatcher, type MailCatcherOptions } from './mail-catcher.ts'
export type { Log } from './log.ts'
