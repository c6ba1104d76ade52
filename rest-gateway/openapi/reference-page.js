// The page /docs: shows the OpenAPI document of the caller's role, and sends requests. The token is kept in memory only.

import { exampleOf, typeText } from "./schema-text.js";

/** Beyond it, the operations of a group are shown when the group is opened. */
const MAX_SHOWN = 300;

const METHODS = ["get", "post", "put", "patch", "delete"];

const controls = document.getElementById("controls");
const list = document.getElementById("operations");
const status = document.getElementById("status");

let api = { paths: {}, components: {} };
let token = "";
let csrfToken = "";

controls.addEventListener("submit", (event) => {
  event.preventDefault();
  load();
});
controls.elements.version?.addEventListener("change", load);
controls.elements.filter.addEventListener("input", show);
window.addEventListener("hashchange", openLinked);
load();

async function load() {
  token = controls.elements.token.value.trim().replace(/^Bearer\s+/i, "");
  status.textContent = "Loading the document…";
  const address = new URL(list.dataset.document, location.href);
  if (controls.elements.version) address.searchParams.set("version", controls.elements.version.value);
  const response = await fetch(address, { headers: authorization() }).catch((error) => error);
  const body = response instanceof Error ? null : await response.json();
  if (!response.ok) {
    status.textContent = `The document could not be loaded: ${body?.error?.message ?? response.message ?? response.status}`;
    return;
  }
  api = body;
  show();
  openLinked();
}

function authorization() {
  return token === "" ? {} : { Authorization: `Bearer ${token}` };
}

function show() {
  const words = controls.elements.filter.value.toLowerCase().split(/\s+/);
  const operations = operationsOf(api).filter(({ text }) => words.every((word) => text.includes(word)));
  const groups = Map.groupBy(operations, ({ tag }) => tag);
  const isShort = operations.length <= MAX_SHOWN;
  list.replaceChildren(...[...groups].map(([tag, members]) => groupSection(tag, members, isShort)));
  status.textContent = `${operations.length} operations. ${api.info.description}`;
}

function operationsOf({ paths }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const { tags = ["Other"], summary = "", operationId, ...rest } = item[method];
      const text = `${method} ${path} ${summary} ${tags[0]}`.toLowerCase();
      return { ...rest, method: method.toUpperCase(), path, tag: tags[0], summary, id: operationId, text };
    }),
  );
}

function groupSection(tag, operations, isShort) {
  const about = api.tags?.find(({ name }) => name === tag)?.description;
  const items = make("div");
  const fill = () => items.replaceChildren(...operations.map(operationDetails));
  if (isShort) {
    fill();
  } else {
    const button = make("button", { type: "button" }, `Show ${operations.length} operations of ${tag}`);
    button.addEventListener("click", fill);
    items.append(button);
  }
  return make("section", {}, make("h2", {}, tag), about ? make("p", {}, about) : "", items);
}

function operationDetails(operation) {
  const { id, method, path, summary, deprecated } = operation;
  const details = make(
    "details",
    { id, class: "operation" },
    make(
      "summary",
      {},
      make("span", { class: `method ${method.toLowerCase()}` }, method),
      make("code", {}, path),
      make("span", { class: "about" }, deprecated ? `${summary} (deprecated)` : summary),
    ),
  );
  const fill = () => details.append(operationBody(operation));
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

/** A link to an operation opens it. */
function openLinked() {
  const linked = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!linked?.matches("details.operation")) return;
  linked.open = true;
  linked.scrollIntoView();
}

function operationBody(operation) {
  const parameters = (operation.parameters ?? []).map(resolve);
  const required = parameters.filter((parameter) => parameter.required);
  const optional = parameters.filter((parameter) => !parameter.required);
  const form = make("form", { autocomplete: "off" });
  const curl = make("code");
  const result = make("div", { role: "status" });
  form.append(
    ...required.map((parameter) => parameterField(parameter, operation)),
    optional.length === 0 ? "" : optionalFields(optional, operation),
    bodyField(operation),
    make("h3", {}, "Request"),
    make("pre", { tabindex: "0" }, curl),
    make("button", {}, "Send"),
    result,
  );
  const update = () => {
    curl.textContent = curlText(requestOf(operation, parameters, form));
  };
  form.addEventListener("input", update);
  form.addEventListener("focusin", update);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    update();
    result.replaceChildren(await send(requestOf(operation, parameters, form)));
  });
  update();
  return make("div", {}, descriptionOf(operation), form, responsesOf(operation));
}

function descriptionOf({ description }) {
  return description ? make("p", {}, description) : "";
}

function optionalFields(parameters, operation) {
  return make(
    "details",
    {},
    make("summary", {}, `Optional parameters (${parameters.length})`),
    make("div", {}, ...parameters.map((parameter) => parameterField(parameter, operation))),
  );
}

function parameterField(parameter, { id }) {
  const { name, description = "", schema = {}, required } = parameter;
  const field = `${id}.${parameter.in}.${name}`;
  const type = typeText(schema, resolve);
  const hint = [`${parameter.in}, ${type}`, description.replaceAll("`", "")].filter(Boolean).join(": ");
  return make(
    "div",
    { class: "field" },
    make("label", { for: field }, name, required ? " (required)" : ""),
    make("p", { class: "hint", id: `${field}.hint` }, hint),
    make("input", { id: field, name: `${parameter.in}.${name}`, "aria-describedby": `${field}.hint` }),
  );
}

function bodyField({ id, requestBody }) {
  const schema = resolve(requestBody)?.content?.["application/json"]?.schema;
  if (!schema) return "";
  const example = JSON.stringify(exampleOf(schema, resolve), null, 2);
  return make(
    "div",
    { class: "field" },
    make("label", { for: `${id}.body` }, "Body"),
    make("textarea", { id: `${id}.body`, name: "body", rows: String(example.split("\n").length + 1) }, example),
    schemaDetails("Schema of the body", schema),
  );
}

function schemaDetails(title, schema) {
  const details = make("details", {}, make("summary", {}, title));
  const fill = () =>
    details.append(make("div", {}, make("pre", { tabindex: "0" }, make("code", {}, typeText(schema, resolve)))));
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

function responsesOf({ responses = {} }) {
  const entries = Object.entries(responses).map(([code, given]) => {
    const { description, content } = resolve(given);
    const schema = content?.["application/json"]?.schema;
    const isSuccess = code < "300";
    return [
      make("dt", {}, code),
      make("dd", {}, description, isSuccess && schema ? schemaDetails("Schema", schema) : ""),
    ];
  });
  return make("div", {}, make("h3", {}, "Responses"), make("dl", {}, ...entries.flat()));
}

function requestOf({ method, path, requestBody }, parameters, form) {
  const query = new URLSearchParams();
  const headers = authorization();
  let filled = path;
  for (const { name, in: place, schema } of parameters) {
    const value = form.elements[`${place}.${name}`].value;
    if (place === "path") filled = filled.replace(`{${name}}`, value === "" ? `{${name}}` : encodeURIComponent(value));
    if (value === "") continue;
    if (place === "header") headers[name] = value;
    if (place === "query") {
      for (const part of schema?.type === "array" ? value.split(",") : [value]) query.append(name, part);
    }
  }
  const address = query.size === 0 ? filled : `${filled}?${query}`;
  if (!requestBody) return { method, address, headers };
  return {
    method,
    address,
    headers: { ...headers, "Content-Type": "application/json" },
    body: form.elements.body.value,
  };
}

function curlText({ method, address, headers, body }) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [
    `curl${method === "GET" ? "" : ` -X ${method}`} ${quote(location.origin + address)}`,
    ...Object.entries(headers).map(
      ([name, value]) =>
        `-H ${name === "Authorization" ? '"Authorization: Bearer $TOKEN"' : quote(`${name}: ${value}`)}`,
    ),
    ...(body === undefined ? [] : [`-d ${quote(body)}`]),
  ];
  return lines.join(" \\\n  ");
}

async function send(request) {
  const started = performance.now();
  const response = await sendWithCsrfToken(request).catch((error) => error);
  if (response instanceof Error) return make("p", { class: "fault" }, response.message);
  const text = await response.text();
  const milliseconds = Math.round(performance.now() - started);
  return make(
    "div",
    {},
    make("h3", {}, `${response.status} ${response.statusText}, ${milliseconds} ms`),
    make("pre", { class: "response", tabindex: "0" }, make("code", {}, indent(text))),
  );
}

/** Requests by session cookie need the session's CSRF token to change anything. */
async function sendWithCsrfToken({ method, address, headers, body }) {
  const attempt = () =>
    fetch(address, { method, body, headers: csrfToken === "" ? headers : { ...headers, "X-CSRF-Token": csrfToken } });
  const response = await attempt();
  if (response.status !== 403 || method === "GET" || token !== "") return response;
  const tokenResponse = await fetch("/csrf-token");
  if (!tokenResponse.ok) return response;
  csrfToken = (await tokenResponse.json()).csrfToken;
  return attempt();
}

function indent(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Follows a reference within the document. */
function resolve(part) {
  if (!part?.$ref) return part;
  return part.$ref
    .slice(2)
    .split("/")
    .reduce((from, key) => from?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], api);
}

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
