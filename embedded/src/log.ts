/** What is told while it runs; a pino logger is one. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  error(fields: object, message: string): void
}
