// registry.js make DIRECTORY PACKAGES FILES   writes tarballs of packages, each with so many files
// registry.js serve DIRECTORY                 answers npm for them on 127.0.0.1:4873, and says "ready"
//
// What `bench_broker --only npm` installs from: nothing of it leaves the machine, or its enclosure.
'use strict';
const { execFileSync } = require('child_process');
const { createHash } = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');

const [what, directory, packages, files] = process.argv.slice(2);
const address = 'http://127.0.0.1:4873';

function make() {
  for (let i = 0; i < Number(packages); ++i) {
    const name = `part-${i}`;
    const top = path.join(directory, 'package');
    fs.mkdirSync(path.join(top, 'lib'), { recursive: true });
    fs.writeFileSync(path.join(top, 'package.json'), JSON.stringify({ name, version: '1.0.0', main: 'lib/file0.js' }));
    for (let f = 1; f < Number(files); ++f)
      fs.writeFileSync(path.join(top, 'lib', `file${f}.js`), `exports.value = ${i * f};\n`.repeat(1 + (f * 7) % 60));
    execFileSync('tar', ['-czf', `${name}.tgz`, 'package'], { cwd: directory });
    fs.rmSync(top, { recursive: true });
  }
}

function serve() {
  const answers = new Map();
  for (const file of fs.readdirSync(directory)) {
    const name = file.replace(/\.tgz$/, '');
    const bytes = fs.readFileSync(path.join(directory, file));
    const integrity = 'sha512-' + createHash('sha512').update(bytes).digest('base64');
    const dist = { tarball: `${address}/tarballs/${file}`, integrity };
    answers.set(`/tarballs/${file}`, bytes);
    answers.set(`/${name}`, JSON.stringify({
      name, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name, version: '1.0.0', dist } } }));
  }
  http.createServer((request, response) => {
    const answer = answers.get(request.url);
    response.writeHead(answer ? 200 : 404);
    response.end(answer);
  }).listen(4873, '127.0.0.1', () => process.stdout.write('ready\n'));
}

if (what === 'make') make();
else serve();
