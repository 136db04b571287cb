// The API described from its own openapi.json: every operation with its fields. Needs no foreign host.
"use strict";

function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  return schema.type === "array" ? `list of ${typeOf(schema.items)}` : schema.type || "";
}

function bounds(schema) {
  const parts = [];
  for (const one of [schema, ...(schema.anyOf || [])]) {
    if (one.minimum !== undefined || one.maximum !== undefined) parts.push(`${one.minimum ?? "…"} to ${one.maximum ?? "…"}`);
    if (one.maxLength !== undefined) parts.push(`${one.minLength ?? 0} to ${one.maxLength} characters`);
  }
  return parts.join("; ");
}

function fields(schema, all) {
  const table = node("table", {});
  const named = all[typeOf(schema)] || schema;
  for (const [name, field] of Object.entries(named.properties || {})) {
    const must = (named.required || []).includes(name) ? " (required)" : "";
    table.append(node("tr", {}, node("td", {}, node("code", {}, name), must), node("td", {}, typeOf(field)), node("td", {}, [field.description, bounds(field)].filter(Boolean).join(" "))));
  }
  return table;
}

fetch("openapi.json").then((response) => response.json()).then((api) => {
  const page = document.getElementById("operations");
  const schemas = api.components ? api.components.schemas : {};
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const part = node("section", { class: "turn" }, node("h2", {}, node("code", {}, `${method.toUpperCase()} ${path}`)), node("p", {}, operation.description || ""));
      const body = operation.requestBody && operation.requestBody.content["application/json"].schema;
      if (body) part.append(node("p", { class: "quiet" }, "Request"), fields(body, schemas));
      const answer = operation.responses["200"] && operation.responses["200"].content && operation.responses["200"].content["application/json"];
      if (answer) part.append(node("details", {}, node("summary", {}, `Answers with ${typeOf(answer.schema)}`), fields(answer.schema, schemas)));
      page.append(part);
    }
  }
});
