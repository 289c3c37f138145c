import { expect, test } from 'vitest'
import { banner } from '../../sidecar/cli/start.ts'
import { loadConfig } from '../../sidecar/config.ts'

const bannerFor = (url: string) => {
  const config = loadConfig({ env: { COUCHDB_URL: url, SMTP_URL: 'smtp://me:s3cret@mail.example.com' } })
  const mail = { smtpUrl: 'smtp://localhost:1025', page: 'http://localhost:5985/_mail' }
  return banner({ sidecar: 'http://localhost:5985', couch: { url, embedded: false }, mail }, config, '1.2.3')
}

test('with an external CouchDB and mail server, the banner links only to what exists', () => {
  const url = 'http://admin:s3cret@couch.example.com:5984'
  const config = loadConfig({ env: { COUCHDB_URL: url, SMTP_URL: 'smtp://me:s3cret@mail.example.com' } })
  const addresses = { sidecar: 'http://localhost:5985', couch: { url, embedded: false }, mail: undefined }
  const shown = banner(addresses, config, '1.2.3')
  for (const command of ['canary', 'status --stuck', 'explain <db> <docid>'])
    expect(shown).toContain(`couchdb-sidecar ${command}`)
  for (const absent of ['s3cret', '_mail', 'curl', 'embedded']) expect(shown).not.toContain(absent)
})

test.each([
  ['admin', "-u 'admin' "],
  ['the%20boss', "-u 'the boss' "],
  ["o'neill", "-u 'o'\\''neill' "],
])('for an external server, the user can paste the command, which prompts for the password: %s', (user, option) => {
  const shown = bannerFor(`http://${user}:s3cret@couch.example.com:5984`)
  expect(shown).toContain(`curl -X POST ${option}http://couch.example.com:5984/control -H`)
  expect(shown).not.toContain('s3cret')
})

test('without a user in the URL, the command has no credentials', () => {
  expect(bannerFor('http://couch.example.com')).toContain('curl -X POST http://couch.example.com/control -H')
})
