import { execFile } from "node:child_process";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const openssl = (...words: string[]) => promisify(execFile)("openssl", words);

/** Files in PEM form. */
export type Signed = { readonly certificate: string; readonly key: string };

export type Authority = {
  readonly certificate: string;
  /** A certificate for that host, or for the login of that name. */
  sign(name: string, file?: string): Promise<Signed>;
};

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** An authority of the test's own, with its files in that folder. */
export async function makeAuthority(folder: string, name: string): Promise<Authority> {
  const certificate = join(folder, `${name}.crt`);
  const key = join(folder, `${name}.key`);
  await openssl("req", "-x509", ...NEW_KEY, "-keyout", key, "-out", certificate, "-days", "2", "-subj", `/CN=${name}`);
  return {
    certificate,
    async sign(subject, file = subject) {
      const signed = { certificate: join(folder, `${file}.crt`), key: join(folder, `${file}.key`) };
      const request = join(folder, `${file}.csr`);
      const extensions = join(folder, `${file}.ext`);
      await writeFile(extensions, `subjectAltName=DNS:${subject}\n`);
      await openssl("req", "-new", ...NEW_KEY, "-keyout", signed.key, "-out", request, "-subj", `/CN=${subject}`);
      const by = ["-CA", certificate, "-CAkey", key, "-CAcreateserial", "-days", "2", "-extfile", extensions];
      await openssl("x509", "-req", "-in", request, "-out", signed.certificate, ...by);
      await chmod(signed.key, 0o600);
      return signed;
    },
  };
}
