// The program of a harness, without the one function that a problem's driver.cpp defines.
#include <kernelblaster/program.hpp>

int main(int argc, char** argv) { return kb::run(argc, argv, kb_call_launcher); }
