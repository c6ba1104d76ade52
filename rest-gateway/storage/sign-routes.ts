import { jsonResponse } from "#http";
import { isJsonObject, type JsonObject } from "#runtime/json";
import { checkImageOptions, type SentImageOptions } from "./image-options.ts";
import { openSigning } from "./signed-urls.ts";
import { storageError } from "./storage-error.ts";
import { addressOf, readJsonBody, requiredTexts, type StorageRoutes, type StorageServices } from "./storage-request.ts";

const MOST_PATHS = 500;

export function signRoutes(services: Pick<StorageServices, "keys" | "signers">): StorageRoutes {
  return {
    "POST /object/sign/{bucket}": async (request) => {
      const { bucket = "" } = request.parameters;
      const body = await readJsonBody(request);
      const seconds = readExpiry(body);
      const paths = requiredTexts(body, "paths", { max: MOST_PATHS });
      const rows = await request.rows.findAllCurrent(bucket, paths);
      const found = new Map(rows.map(({ name, id, version }) => [name, { id, version }]));
      const sign = await openSigning(request.caller, services);
      const signed = paths.map((path) => {
        const object = found.get(path);
        if (!object) {
          return { error: "Either the object does not exist or you do not have access to it", path, signedURL: null };
        }
        const address = { bucket, name: path };
        const token = sign("storage:download", address, seconds, { object });
        return { error: null, path, signedURL: `/object/sign/${bucket}/${path}?token=${token}` };
      });
      return jsonResponse(200, signed);
    },
    "POST /object/sign/{bucket}/{path*}": async (request) => {
      const address = addressOf(request);
      const body = await readJsonBody(request);
      const seconds = readExpiry(body);
      const image = readTransform(body);
      const { id, version } = await request.rows.findCurrent(address);
      const object = { id, version };
      const sign = await openSigning(request.caller, services);
      if (image) {
        const token = sign("storage:image", address, seconds, { object, transformations: JSON.stringify(image) });
        return jsonResponse(200, { signedURL: `/render/image/sign/${address.bucket}/${address.name}?token=${token}` });
      }
      const token = sign("storage:download", address, seconds, { object });
      return jsonResponse(200, { signedURL: `/object/sign/${address.bucket}/${address.name}?token=${token}` });
    },
  };
}

/** Reads the image options; null for the object as it is. */
function readTransform({ transform }: JsonObject): SentImageOptions | null {
  if (transform === undefined) return null;
  if (!isJsonObject(transform)) throw storageError("InvalidRequest", "body/transform must be object");
  return checkImageOptions(transform);
}

function readExpiry({ expiresIn }: JsonObject): number {
  if (typeof expiresIn !== "number" || !Number.isInteger(expiresIn))
    throw storageError("InvalidRequest", "body/expiresIn must be integer");
  if (expiresIn < 1) throw storageError("InvalidRequest", "body/expiresIn must be >= 1");
  return expiresIn;
}
