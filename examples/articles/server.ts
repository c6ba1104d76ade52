import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

const { SERVICE_URL = "http://127.0.0.1:3000", ANON_KEY, PORT = "5173" } = process.env;
if (!ANON_KEY) refuse("Set ANON_KEY: npm run keys prints it.");

const HERE = import.meta.dirname;
const CLIENT = join(HERE, "../../node_modules/@supabase/supabase-js/dist/umd/supabase.js");
const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": [join(HERE, "index.html"), "text/html"],
  "/app.js": [join(HERE, "app.js"), "text/javascript"],
  "/style.css": [join(HERE, "style.css"), "text/css"],
  "/supabase.js": [CLIENT, "text/javascript"],
};

const server = createServer(async ({ url = "/" }, response) => {
  if (url === "/config.json") {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ url: SERVICE_URL, key: ANON_KEY }));
    return;
  }
  const [file, type] = FILES[url] ?? [];
  response.writeHead(file ? 200 : 404, { "Content-Type": `${type ?? "text/plain"}; charset=utf-8` });
  response.end(file ? await readFile(file) : "Not found");
});
server.on("error", ({ code }: NodeJS.ErrnoException) => {
  refuse(`Port ${PORT} of 127.0.0.1 cannot be had (${code}); set PORT to another one.`);
});
server.listen(Number(PORT), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`http://127.0.0.1:${address?.port}`);
});

function refuse(reason: string): never {
  console.error(reason);
  process.exit(1);
}
