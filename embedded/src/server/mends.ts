/** Faults of PouchDB's server that are mended in its text, when Node reads it: `main.ts` says which. */
import Module from 'node:module'

/** Text of its packages, by the file it stands in, and what is read in its place. */
const MENDS: readonly (readonly [file: RegExp, from: string, to: string])[] = [
  [
    /[\\/]pouchdb-validation[\\/]lib[\\/]index\.js$/,
    'newDoc._revisions = (oldDoc || {})._revisions;',
    'newDoc = Object.assign({}, newDoc, { _revisions: (oldDoc || {})._revisions });',
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]utils\.js$/,
    'getOrCreateDB(req.PouchDB, dbName).then(function (db) {',
    `getOrCreateDB(req.PouchDB, dbName, true).then(function (db) {
       if (!db) return exports.sendJSON(res, 404, { error: 'not_found', reason: 'no_db_file' })`,
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]create-or-delete-dbs\.js$/,
    `function getOrCreateDB(PouchDB, dbName) {`,
    `function getOrCreateDB(PouchDB, dbName, ifThere) {`,
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]create-or-delete-dbs\.js$/,
    `db = new PouchDB(dbName);
    map.set(dbName, db);
    return db;`,
    `return Promise.resolve(ifThere ? PouchDB.allDbs() : [dbName]).then(function (dbs) {
      if (dbs.indexOf(dbName) === -1) return
      db = new PouchDB(dbName)
      map.set(dbName, db)
      return db
    })`,
  ],
  [
    /[\\/]express-pouchdb[\\/]lib[\\/]utils\.js$/,
    `if (err) {
      return next(err);
    }
    req.rawBody = string;`,
    `if (err) return exports.sendJSON(res, 400, { error: 'bad_request', reason: 'The body is not whole.' })
    req.rawBody = string;`,
  ],
]

interface Compiling {
  _compile: (this: unknown, source: string, path: string) => unknown
}

const { prototype } = Module as unknown as { readonly prototype: Compiling }
const compile = prototype._compile
prototype._compile = function mended(source, path) {
  const mends = MENDS.filter(([file]) => file.test(path))
  const text = mends.reduce((before, [, from, to]) => before.replace(from, to), source)
  return compile.call(this, text, path)
}
