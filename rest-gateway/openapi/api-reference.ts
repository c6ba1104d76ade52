import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { GatewayHandler } from "../http/request.ts";
import type { GatewayResponse } from "../http/response.ts";
import type { GatewayRoutes } from "../http/router.ts";
import type { ReadVersions } from "../resource/versions/versions.ts";

const REFERENCE_PATH = "/docs";

const SWAGGER_UI = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
/** The files of the package that the page loads. */
const SWAGGER_UI_FILES: Readonly<Record<string, string>> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "swagger-ui-standalone-preset.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

const SECURITY_POLICY = Object.entries({
  "default-src": "'none'",
  "script-src": "'self'",
  // Swagger UI sets inline styles.
  "style-src": "'self' 'unsafe-inline'",
  "img-src": "'self' data:",
  "connect-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
})
  .map((directive) => directive.join(" "))
  .join("; ");

/** `/docs`: Swagger UI with the OpenAPI document. All files come from this server. */
export function apiReferenceRoutes(documentPath: string, versions: ReadVersions): GatewayRoutes {
  const page = serveFile(referenceHtml(), "text/html; charset=utf-8", { "Content-Security-Policy": SECURITY_POLICY });
  const script: GatewayHandler = async (request) => {
    const served = (await versions()).filter(({ status }) => status !== "retired").map(({ number }) => number);
    return serveFile(startScript(documentPath, served), "text/javascript; charset=utf-8")(request);
  };
  const files = Object.entries(SWAGGER_UI_FILES).map(([name, type]) => {
    let read: Promise<GatewayHandler> | undefined;
    const handle: GatewayHandler = async (request) => {
      read ??= readFile(join(SWAGGER_UI, name)).then((bytes) => serveFile(bytes, type));
      return (await read)(request);
    };
    return [`${REFERENCE_PATH}/${name}`, { GET: handle }] as const;
  });
  return {
    [REFERENCE_PATH]: { GET: page },
    [`${REFERENCE_PATH}/start.js`]: { GET: script },
    ...Object.fromEntries(files),
  };
}

function serveFile(body: string | Buffer, type: string, more: Readonly<Record<string, string>> = {}): GatewayHandler {
  const shared = { ETag: `"${hash("sha256", body, "hex")}"`, "Cache-Control": "no-cache", ...more };
  return ({ headers }): GatewayResponse => {
    if (headers["if-none-match"] === shared.ETag) return { status: 304, headers: shared, body: null };
    return { status: 200, headers: { ...shared, "Content-Type": type }, body };
  };
}

function referenceHtml(): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>API reference</title>
    <link rel="icon" type="image/png" href="${REFERENCE_PATH}/favicon-32x32.png">
    <link rel="stylesheet" href="${REFERENCE_PATH}/swagger-ui.css">
  </head>
  <body style="margin: 0">
    <main id="reference"></main>
    <script src="${REFERENCE_PATH}/swagger-ui-bundle.js"></script>
    <script src="${REFERENCE_PATH}/swagger-ui-standalone-preset.js"></script>
    <script src="${REFERENCE_PATH}/start.js"></script>
  </body>
</html>
`;
}

/** The document depends on the caller, so it is fetched again after authorization. The token is kept in memory only. */
function startScript(documentPath: string, versions: readonly number[]): string {
  const urls = versions.map((version) => ({ url: `${documentPath}?version=${version}`, name: `Version ${version}` }));
  return `let token = null;
const asBearer = (authorizations) => authorizations.bearer?.value ?? null;
const FetchAgain = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorize: (authorize) => (given) => {
          authorize(given);
          token = asBearer(given);
          reference.specActions.download();
        },
        logout: (logout) => (names) => {
          logout(names);
          token = null;
          reference.specActions.download();
        },
      },
    },
  },
});
const reference = SwaggerUIBundle({
  urls: ${JSON.stringify(urls)},
  dom_id: "#reference",
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  plugins: [FetchAgain],
  layout: "StandaloneLayout",
  deepLinking: true,
  filter: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
  requestInterceptor(request) {
    if (request.loadSpec && token) request.headers.Authorization = "Bearer " + token;
    return request;
  },
});
`;
}
