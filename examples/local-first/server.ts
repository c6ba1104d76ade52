import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "rolldown";

const { SERVICE_URL = "http://127.0.0.1:3000", ANON_KEY, PORT = "5173" } = process.env;
const HERE = import.meta.dirname;

const { output } = await build({
  input: join(HERE, "app.jsx"),
  platform: "browser",
  transform: { jsx: "react-jsx", define: { "process.env.NODE_ENV": '"production"' } },
  write: false,
  // It warns of each directive for servers that render React.
  logLevel: "silent",
});

const CONTENT: Readonly<Record<string, readonly [type: string, content: string]>> = {
  "/": ["text/html", await readFile(join(HERE, "index.html"), "utf8")],
  "/style.css": ["text/css", await readFile(join(HERE, "../articles/style.css"), "utf8")],
  "/app.js": ["text/javascript", output[0].code],
  "/config.json": ["application/json", JSON.stringify({ url: SERVICE_URL, key: ANON_KEY })],
};

const server = createServer(({ url = "/" }, response) => {
  const [type, content] = CONTENT[url] ?? ["text/plain", "Not found"];
  response.writeHead(CONTENT[url] ? 200 : 404, { "Content-Type": `${type}; charset=utf-8` }).end(content);
});
server.listen(Number(PORT), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`http://127.0.0.1:${address?.port}`);
});
