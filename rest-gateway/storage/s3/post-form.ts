import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import { HttpError, type MatchedRequest } from "#http";
import { s3Error } from "./s3-error.ts";

/** By their names in lower case. */
export type FormFields = ReadonlyMap<string, string>;

/** A form up to its file: what follows the file is not read as a field, as at S3. */
export type PostForm = {
  readonly fields: FormFields;
  /** As the client calls it; "" if it does not. */
  readonly fileName: string;
  /** Throws at its end unless the form was complete. */
  readonly content: AsyncIterable<Buffer>;
  /** The rest of a refused form is not read. */
  stop(): void;
};

/** As at S3, of all fields: nobody knows yet who sends them. */
const MAX_FIELD_BYTES = 20 * 1024;
const LIMITS = { fields: 100, fieldNameSize: 200, fieldSize: MAX_FIELD_BYTES, files: 1, parts: 101, headerPairs: 50 };

/** Reads the fields, and opens the file. */
export async function openPostForm(request: MatchedRequest): Promise<PostForm> {
  const opened = Promise.withResolvers<PostForm>();
  const stopping = new AbortController();
  const fields = new Map<string, string>();
  const form = makeParser(request.headers["content-type"]!);
  const refuse = (message: string) => stopping.abort(s3Error("InvalidArgument", message));
  let fieldBytes = 0;
  let isOpen = false;
  form.on("field", (name, value, isNameCut, isValueCut) => {
    if (isOpen) return;
    const key = name.toLowerCase();
    fieldBytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (isNameCut || isValueCut || fieldBytes > MAX_FIELD_BYTES) return refuse("The fields of the form are too long.");
    if (fields.has(key)) refuse(`The form has the field ${key} twice.`);
    fields.set(key, value);
  });
  form.on("fieldsLimit", () => refuse("The form has too many fields."));
  form.on("file", (_field, file, fileName = "") => {
    if (isOpen || stopping.signal.aborted) return void file.resume();
    isOpen = true;
    const stop = () => stopping.abort(s3Error("MalformedPOSTRequest"));
    // A form may break before anybody reads its file.
    file.on("error", () => {});
    parsed.catch((error) => file.destroy(error));
    opened.resolve({ fields, fileName, content: readFile(file, parsed), stop });
  });
  const parsed = pipeline(Readable.from(request.streamBody()), form, { signal: stopping.signal }).catch((error) => {
    if (stopping.signal.aborted) throw stopping.signal.reason;
    throw error instanceof HttpError ? error : s3Error("MalformedPOSTRequest", undefined, { cause: error });
  });
  parsed.then(
    () => opened.reject(s3Error("InvalidArgument", "POST requires exactly one file upload per request.")),
    (error) => opened.reject(error),
  );
  return opened.promise;
}

function makeParser(contentType: string): Busboy {
  try {
    return new Busboy({ headers: { "content-type": contentType } as BusboyHeaders, limits: LIMITS });
  } catch (error) {
    throw s3Error("MalformedPOSTRequest", undefined, { cause: error });
  }
}

async function* readFile(file: Readable, parsed: Promise<void>): AsyncGenerator<Buffer> {
  try {
    yield* file;
  } catch (error) {
    await parsed;
    throw error;
  }
  await parsed;
}
