import { expect, test } from 'vitest'
import { compileDdocs } from '../../sidecar/deploy/compile.ts'
import { ddocFolder } from './folder.ts'

const compile = (files: Record<string, string>) => compileDdocs({ folder: ddocFolder(files) })

test.each([
  ['a document with nothing but an id', 'doc.name.length'],
  ['a document with null in every field', '("name" in doc ? doc.name.length : 0)'],
  ['people.ts[1]', '(doc.age > 100 ? doc.nothing.length : 0)'],
])('a map that throws on %s fails the deploy', async (sample, expression) => {
  const files = {
    'app/views/v/map.js': `export default function (doc) { emit(${expression}) }`,
    '_samples/people.ts': 'export default [{ name: "Ada", age: 36 }, { name: "Methusalem", age: 969 }]',
  }
  await expect(compile(files)).rejects.toThrow(
    new RegExp(`app/views/v/map\\.js: threw on ${sample.replace(/[[\]]/g, '\\$&')}: TypeError: .+`),
  )
})

test.each([
  ['views/v/map', {}, true],
  ['views/v/map', { 'app/options.json': '{ "include_design": true }' }, false],
  ['indexes/i/index', {}, false],
  ['nouveau/n/index', {}, true],
])('%s with %o gets a design document only if CouchDB passes one to it', async (path, more, fine) => {
  const source = 'export default function (doc) { if (doc.language) doc.nothing.length }'
  const compiling = compile({ [`app/${path}.js`]: source, ...more })
  if (fine) await expect(compiling).resolves.toHaveLength(1)
  else await expect(compiling).rejects.toThrow('threw on a design document: TypeError')
})

test('a map that changes the document fails the deploy, because CouchDB freezes it', async () => {
  const files = { 'app/views/v/map.js': 'export default function (doc) { doc.seen = true; emit(doc._id) }' }
  await expect(compile(files)).rejects.toThrow(/map\.js: threw on .*TypeError/)
})

test.each([
  ['doc._id.normalize("NFC")', /normalize is not a function; CouchDB's QuickJS has no normalize: import 'unorm' first/],
  ['doc._id.localeCompare("b")', /localeCompare is not a function; .* compare by < and >/],
])('a method that an engine lacks fails the deploy with advice: %s', async (code, expected) => {
  const files = { 'app/views/v/map.js': `export default function (doc) { emit(${code}) }` }
  await expect(compile(files)).rejects.toThrow(expected)
})

test('a function that does not end fails the deploy', async () => {
  const files = { 'app/views/v/map.js': 'export default function () { for (;;) {} }' }
  await expect(compile(files)).rejects.toThrow(/timed out/)
})

test('a reduce that throws on its map’s rows, or on its own results, fails the deploy', async () => {
  const map = 'export default function (doc) { emit(doc._id, 1) }'
  const reduce = (body: string) => ({
    'app/views/v/map.js': map,
    'app/views/v/reduce.js': `export default function (keys, values, rereduce) { ${body} }`,
  })
  await expect(compile(reduce('return keys[0][0].length'))).rejects.toThrow(/reduce\.js: threw on its own results/)
  await expect(compile(reduce('return values.map((v) => v.n.m)'))).rejects.toThrow(/reduce\.js: threw on the rows/)
  await expect(compile(reduce('return sum(values)'))).resolves.toHaveLength(1)
})

test.each([
  ['return doc.owner.id === req.query.id', 'a document with nothing but an id, requested by a member (GET)'],
  ['return doc.language && doc.nothing.length', 'a design document, requested by a member (GET)'],
  ['return doc._deleted && doc.nothing.length', 'a deleted document, requested by a member (GET)'],
  ['return req.userCtx.name.length > 1', 'a document with nothing but an id, requested by an anonymous user (GET)'],
  [
    'return req.method === "POST" && req.body.ids.length',
    'a document with nothing but an id, requested by a member (POST)',
  ],
  ['return doc._revisions.start > 0 && req.headers.Host && req.query.filter.length > 0', undefined],
  ['return req.secObj.admins.names.indexOf(req.userCtx.name) >= 0 && req.cookie.AuthSession', undefined],
  [
    'return req.userCtx.roles.indexOf("_admin") < 0 && req.path.concat(req.requested_path)[0] === req.info.db_name',
    undefined,
  ],
])('a filter runs on every sample document, for every kind of user: %s', async (body, sample) => {
  const compiling = compile({ 'app/filters/f.js': `export default function (doc, req) { ${body} }` })
  if (sample === undefined) await expect(compiling).resolves.toHaveLength(1)
  else await expect(compiling).rejects.toThrow(`f.js: threw on ${sample}: TypeError: `)
})

test.each([
  ['throw new Error("no")', false],
  ['throw "no"', false],
  ['throw { forbidden: 1 }', false],
  ['if (newDoc._deleted) newDoc.type.length', false],
  ['if (oldDoc) newDoc.nothing.length', false],
  ['if (userCtx.name === null) newDoc.nothing.length', false],
  ['if (userCtx.roles.indexOf("_admin") >= 0) newDoc.nothing.length', false],
  ['if (oldDoc && oldDoc._deleted) newDoc.nothing.length', false],
  ['if (secObj.admins.names.indexOf(userCtx.name) < 0) throw { forbidden: "no" }', true],
  ['if (secObj.members.roles.indexOf(userCtx.roles[0]) < 0 && newDoc._revisions.start) newDoc.nothing.length', false],
  ['if (oldDoc && oldDoc._revisions.start !== newDoc._revisions.start) newDoc.nothing.length', true],
  ['throw { forbidden: "no" }', true],
  ['throw { unauthorized: "no" }', true],
  ['if (this.limits.max < 1) throw { forbidden: "no" }', true],
])('a validate_doc_update may throw forbidden or unauthorized, and nothing else: %s', async (body, fine) => {
  const files = {
    'app/validate_doc_update.js': `export default function (newDoc, oldDoc, userCtx, secObj) { ${body} }`,
    'app/limits.json': '{ "max": 3 }',
    '_samples/one.ts': 'export default { _id: "one", type: "a" }',
  }
  if (fine) await expect(compile(files)).resolves.toHaveLength(1)
  else await expect(compile(files)).rejects.toThrow(/validate_doc_update\.js: threw on /)
})
