import type { Readable } from "node:stream";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import { HttpError, type MatchedRequest } from "#http";
import { writeForm } from "../write-form.ts";
import { s3Error } from "./s3-error.ts";

/** The fields by their names in lower case. */
export type FormFields = ReadonlyMap<string, string>;

/** A form up to its file: later parts are not read as fields, as at S3. */
export type PostForm = {
  readonly fields: FormFields;
  /** The client's name for the file; "" if there is none. */
  readonly fileName: string;
  /** The content, which throws at its end unless the form was complete. */
  readonly content: AsyncIterable<Buffer>;
  /** Stops reading the rest of a refused form. */
  stop(): void;
};

/** The limit of all fields, as at S3: the sender is not known yet. */
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
  form.on("field", (name: string | undefined, value, isNameCut, isValueCut) => {
    if (isOpen) return;
    if (name === undefined) return refuse("A field of the form has no name.");
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
  const parsed = writeForm(request.streamBody(), form, stopping.signal).catch((error) => {
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
