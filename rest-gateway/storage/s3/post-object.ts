import type { GatewayResponse, MatchedRequest } from "#http";
import { openRequest, type StorageServices } from "../storage-request.ts";
import { putObjectOfKey } from "./object-operations.ts";
import { type FormFields, openPostForm, type PostForm } from "./post-form.ts";
import { type ByteRange, checkPolicy } from "./post-policy.ts";
import type { makeS3Authentication } from "./s3-authentication.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";
import { writeXml } from "./write-xml.ts";

/** Fields with the same meaning as the header of that name. */
const HEADER_FIELD = /^(content-(type|disposition|encoding|language|md5)|cache-control|x-amz-(meta-.+|checksum-.+))$/;

/** Handles an upload by a form whose policy is signed, such as a user's browser sends. */
export async function postObject(
  request: MatchedRequest,
  bucket: string,
  authentication: ReturnType<typeof makeS3Authentication>,
  services: StorageServices,
): Promise<GatewayResponse> {
  const form = await openPostForm(request);
  try {
    const fields = withFileName(form);
    const caller = await authentication.ofForm(request, fields);
    request.admit(caller);
    const range = checkPolicy(fields, bucket);
    const key = fields.get("key") ?? "";
    if (key === "") throw s3Error("InvalidArgument", "Bucket POST must contain a field named 'key'.");
    const opened = openRequest(
      {
        ...request,
        headers: headersOf(fields),
        query: new URLSearchParams(),
        streamBody: () => withinRange(form, range),
      },
      caller,
      "storage.s3.upload",
      services,
    );
    const upload: S3Request = { ...opened, payload: { kind: "unsigned" }, bucket, key };
    const { headers } = await putObjectOfKey(upload, services);
    return describeUpload(fields, { bucket, key, headers, services });
  } catch (error) {
    form.stop();
    throw error;
  }
}

const FILE_NAME = /\$\{filename\}/g;

/** Replaces the file name: `uploads/${filename}` ends with the name of the file. */
function withFileName({ fields, fileName }: PostForm): FormFields {
  const key = fields.get("key");
  return key === undefined ? fields : new Map([...fields, ["key", key.replaceAll(FILE_NAME, () => fileName)]]);
}

function headersOf(fields: FormFields): Record<string, string> {
  return Object.fromEntries([...fields].filter(([name]) => HEADER_FIELD.test(name)));
}

async function* withinRange({ content }: PostForm, { min, max }: ByteRange): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    if (bytes > max) throw s3Error("EntityTooLarge");
    yield piece;
  }
  if (bytes < min) throw s3Error("EntityTooSmall");
}

type KeptObject = {
  readonly bucket: string;
  readonly key: string;
  readonly headers: GatewayResponse["headers"];
  readonly services: Pick<StorageServices, "config">;
};

/** Returns 200 like Supabase's service, unless the form requests a page or another status. */
function describeUpload(fields: FormFields, { bucket, key, headers, services }: KeptObject): GatewayResponse {
  const Location = `${services.config.publicUrl ?? ""}/storage/v1/s3/${bucket}/${encodeURI(key)}`;
  const tag = String(headers.ETag);
  const page = URL.parse(fields.get("success_action_redirect") ?? fields.get("redirect") ?? "");
  if (page && /^https?:$/.test(page.protocol)) {
    for (const [name, value] of Object.entries({ bucket, key, etag: tag })) page.searchParams.set(name, value);
    return { status: 303, headers: { ...headers, Location: page.href }, body: null };
  }
  switch (fields.get("success_action_status")) {
    case "201": {
      const body = writeXml("PostResponse", { Location, Bucket: bucket, Key: key, ETag: tag });
      return { status: 201, headers: { ...headers, Location, "Content-Type": "application/xml" }, body };
    }
    case "204":
      return { status: 204, headers: { ...headers, Location }, body: null };
    default:
      return { status: 200, headers: { ...headers, Location }, body: null };
  }
}
