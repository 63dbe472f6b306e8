// SPDX-License-Identifier: Apache-2.0
//
// The site's interface for programs, as OpenAPI 3 (docs/serve.md explains it).
#pragma once

#include <string_view>

namespace culprit::serve {

inline constexpr std::string_view kOpenApi = R"json({
  "openapi": "3.0.3",
  "info": { "title": "culprit", "version": "1", "description": "One analysed corpus." },
  "components": {
    "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } }
  },
  "security": [ {}, { "token": [] } ],
  "paths": {
    "/api/v1/status": {
      "get": {
        "summary": "What the server does now, and the number of the last finished analysis",
        "responses": { "200": { "description": "state (waiting, importing, analysing, ready), analysis, uploads, queued, problems; what, done and total while analysing", "content": { "application/json": {} } } }
      }
    },
    "/api/v1/parts/{name}": {
      "get": {
        "summary": "A part of the report; 'overview' lists the others",
        "parameters": [ { "name": "name", "in": "path", "required": true, "schema": { "type": "string" } } ],
        "responses": {
          "200": { "description": "the part; has an ETag", "content": { "application/json": {} } },
          "304": { "description": "unchanged since the ETag given" },
          "404": { "description": "there is no such part" },
          "503": { "description": "the first analysis is not done yet" }
        }
      }
    },
    "/api/v1/signatures": {
      "post": {
        "summary": "Says of a cluster what it is: stored as a signature",
        "requestBody": { "required": true, "content": { "application/json": { "schema": {
          "type": "object", "required": [ "cluster", "status" ],
          "properties": {
            "cluster": { "type": "string" }, "name": { "type": "string" }, "note": { "type": "string" },
            "status": { "type": "string", "enum": [ "new", "known", "fixed", "ignored" ] } } } } } },
        "responses": {
          "200": { "description": "stored" }, "400": { "description": "not understood" },
          "404": { "description": "there is no such cluster" }
        }
      }
    },
    "/api/v1/traces/{name}": {
      "put": {
        "summary": "Adds a trace, in any format culprit imports; only where uploads are allowed",
        "parameters": [ { "name": "name", "in": "path", "required": true, "schema": { "type": "string" } } ],
        "requestBody": { "required": true, "content": { "application/octet-stream": {} } },
        "responses": {
          "202": { "description": "stored whole, queued to be imported and analysed" },
          "400": { "description": "empty, or no fit name" }, "403": { "description": "no uploads here" },
          "413": { "description": "too large" }, "507": { "description": "no room" }
        }
      }
    },
    "/api/v1/pushes/{sha256}": {
      "parameters": [ { "name": "sha256", "in": "path", "required": true, "schema": { "type": "string", "pattern": "^[0-9a-f]{64}$" } } ],
      "get": {
        "summary": "How much of a trace is here, by the SHA-256 of its bytes",
        "responses": {
          "200": { "description": "state: whole or part; bytes that are here of a part", "content": { "application/json": {} } },
          "403": { "description": "no uploads here" }
        }
      },
      "put": {
        "summary": "Goes on with a native trace where it stopped; only where uploads are allowed",
        "parameters": [
          { "name": "X-Culprit-Offset", "in": "header", "required": true, "schema": { "type": "integer" } },
          { "name": "X-Culprit-Size", "in": "header", "required": true, "schema": { "type": "integer" } },
          { "name": "X-Culprit-Name", "in": "header", "required": true, "schema": { "type": "string" } }
        ],
        "requestBody": { "required": true, "content": { "application/octet-stream": {} } },
        "responses": {
          "200": { "description": "the whole trace is in the corpus" },
          "400": { "description": "not understood" }, "403": { "description": "no uploads here" },
          "409": { "description": "another number of bytes is here: ask again" },
          "413": { "description": "too large" }, "422": { "description": "not what its hash says, or no trace" },
          "507": { "description": "no room" }
        }
      }
    },
    "/api/v1/openapi.json": {
      "get": { "summary": "This description", "responses": { "200": { "description": "OpenAPI 3" } } }
    }
  }
}
)json";

}  // namespace culprit::serve
