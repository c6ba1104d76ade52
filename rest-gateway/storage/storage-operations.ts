/** Supabase's names of the operations of routes. Routes that run no statement have none. */
const OPERATIONS: Readonly<Record<string, string>> = {
  "GET /bucket": "storage.bucket.list",
  "POST /bucket": "storage.bucket.create",
  "GET /bucket/{bucket}": "storage.bucket.get",
  "PUT /bucket/{bucket}": "storage.bucket.update",
  "DELETE /bucket/{bucket}": "storage.bucket.delete",
  "POST /bucket/{bucket}/empty": "storage.bucket.empty",
  "GET /object/public/{bucket}/{path*}": "storage.object.get_public",
  "HEAD /object/public/{bucket}/{path*}": "storage.object.info_public",
  "GET /object/info/public/{bucket}/{path*}": "storage.object.info_public",
  "GET /object/authenticated/{bucket}/{path*}": "storage.object.get_authenticated",
  "GET /object/{bucket}/{path*}": "storage.object.get_authenticated",
  // Supabase has no prefix here.
  "HEAD /object/authenticated/{bucket}/{path*}": "object.head_authenticated_info",
  "HEAD /object/{bucket}/{path*}": "object.head_authenticated_info",
  "GET /object/info/authenticated/{bucket}/{path*}": "object.get_authenticated_info",
  "GET /object/info/{bucket}/{path*}": "object.get_authenticated_info",
  "GET /object/sign/{bucket}/{path*}": "storage.object.get_signed",
  "POST /object/list/{bucket}": "storage.object.list",
  "POST /object/list-v2/{bucket}": "storage.object.list_v2",
  "POST /object/move": "storage.object.move",
  "POST /object/copy": "storage.object.copy",
  "DELETE /object/{bucket}": "storage.object.delete_many",
  "DELETE /object/{bucket}/{path*}": "storage.object.delete",
  "POST /object/sign/{bucket}": "storage.object.sign_many",
  "POST /object/sign/{bucket}/{path*}": "storage.object.sign",
  "POST /object/upload/sign/{bucket}/{path*}": "storage.object.sign_upload_url",
  "PUT /object/upload/sign/{bucket}/{path*}": "storage.object.upload_signed",
  "POST /object/{bucket}/{path*}": "storage.object.upload",
  "PUT /object/{bucket}/{path*}": "storage.object.upload_update",
  "GET /render/image/public/{bucket}/{path*}": "storage.render.image_public",
  "GET /render/image/authenticated/{bucket}/{path*}": "storage.render.image_authenticated",
  "GET /render/image/sign/{bucket}/{path*}": "storage.render.image_sign",
  ...resumable("/upload/resumable"),
  ...resumable("/upload/resumable/sign"),
};

function resumable(base: string): Readonly<Record<string, string>> {
  return {
    [`POST ${base}`]: "storage.tus.upload.create",
    [`HEAD ${base}/{id}`]: "storage.tus.upload.get",
    [`PATCH ${base}/{id}`]: "storage.tus.upload.part",
    [`DELETE ${base}/{id}`]: "storage.tus.upload.delete",
  };
}

/** Returns the value of `storage.operation()` for policies and triggers in a request to the route. */
export function operationOf(method: string, route: string): string {
  const ofMethod = `${method} ${route.slice(route.indexOf(" ") + 1)}`;
  return OPERATIONS[ofMethod] ?? OPERATIONS[route] ?? "";
}
