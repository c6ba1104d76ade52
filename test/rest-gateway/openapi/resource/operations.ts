import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";

// biome-ignore lint/suspicious/noExplicitAny: a document is as deep as it is.
export type Json = any;

export type Operation = {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Null: it takes no body. */
  readonly body: Json | null;
  readonly statuses: readonly string[];
};

export type Parameter = {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly schema: Json;
};

export type TestResponse = { readonly status: number; readonly contentType: string | null; readonly text: string };

export type ReadDocument = {
  readonly operations: readonly Operation[];
  readonly resolve: (schema: Json) => Json;
  /** Returns the part of an answer that the document does not foresee; null if it foresees all. */
  judge(operation: Operation, result: TestResponse): string | null;
};

const METHODS = ["get", "post", "put", "patch", "delete"];

/** An OpenAPI document as a program reads it that knows nothing else of the service. */
export function readDocument(document: Json): ReadDocument {
  const resolve = (schema: Json): Json => {
    if (schema?.$ref === undefined) return schema;
    const steps = String(schema.$ref).slice(2).split("/");
    return resolve(steps.reduce((at, step) => at[step], document));
  };
  const operations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method): Operation => {
      const said = item[method];
      return {
        id: said.operationId,
        method: method.toUpperCase(),
        path,
        parameters: (said.parameters ?? []).map(resolve),
        body: said.requestBody ? resolve(said.requestBody).content["application/json"].schema : null,
        statuses: Object.keys(said.responses),
      };
    }),
  );

  const ajv = new Ajv2020({ strict: false, logger: false });
  formats.default(ajv, ["uuid", "date", "date-time", "email"]);
  ajv.addSchema(document, "document");
  const validators = new Map<string, ValidateFunction>();
  const validatorOf = (schema: Json): ValidateFunction => {
    const text = JSON.stringify(schema).replaceAll('"#/', '"document#/');
    const known = validators.get(text) ?? ajv.compile(JSON.parse(text));
    validators.set(text, known);
    return known;
  };

  return {
    operations,
    resolve,
    judge({ path, method, statuses }, { status, contentType, text }) {
      if (status >= 500) return `a fault of the server: ${text}`;
      if (!statuses.includes(String(status))) return `${status} is not documented: ${text}`;
      const { content } = resolve(document.paths[path][method.toLowerCase()].responses[status]);
      if (!content) return text === "" ? null : `a body where none is documented: ${text}`;
      const type = contentType?.split(";")[0] ?? "";
      if (!content[type]) return `${type} is not documented`;
      const validate = validatorOf(content[type].schema);
      return validate(JSON.parse(text)) ? null : `${ajv.errorsText(validate.errors)}: ${text.slice(0, 500)}`;
    },
  };
}
