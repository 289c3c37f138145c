/** What brings a document back, to be copied into a shell: its `_id` may be a stranger's, with spaces, quotes or `;`. */
export function retryCommand(database: string, id: string): string {
  const args = [database, id].map(quoted)
  return ['couchdb-sidecar retry', ...(id.startsWith('-') ? ['--'] : []), ...args].join(' ')
}

const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
